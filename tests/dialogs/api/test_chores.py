"""A client's own chores leave no dialog and are made to fit; what a person writes is a message, whatever its words."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import sync_to_async

from dialogs.models import LLM, Dialog, Generation
from health.models import HealthReading
from tests.dialogs.api.conftest import Client, Play, a_tool, assistant, long_history, said, user
from tests.dialogs.compacting_builders import RULE, long_text
from tests.standins.lmstudio import LMStudioStandin
from tests.standins.serving import serving

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]

CHORE = {"X-Dominds-Task": "title_generation"}
TITLE = (
    "### Task:\nGenerate a concise, 3-5 word title.\n### Guidelines:\n- Be brief.\n### Output:\n"
    'JSON format: { "title": "…" }\n### Chat History:\n<chat_history>\nUSER: Hello\nASSISTANT: Hi.\n</chat_history>'
)
COMMITTING = """You are an expert software engineer that generates concise, one-line Git commit messages based on the \
provided diffs.
Review the provided context and diffs which are about to be committed to a git repo.
Review the diffs carefully."""
SUMMARISING = """*Briefly* summarize this partial conversation about programming.
Include less detail about older parts and more detail about the most recent messages."""


def system(text: str) -> dict[str, Any]:
    return {"role": "system", "content": text}


@pytest.mark.parametrize(
    "messages",
    [
        [user(TITLE)],
        [system(COMMITTING), user("USER: add f1\n# Diffs:\n+def f1(): pass")],
        [system(f"Think first.\n{COMMITTING}"), user("# Diffs:\n+def f1(): pass")],
        [system(SUMMARISING), user("# USER\nAdd f1.\n# ASSISTANT\nDone.\n")],
    ],
    ids=["open-webui", "aider-commit", "aider-commit-with-a-prefix", "aider-summary"],
)
async def test_a_known_programs_chore_leaves_nothing_behind(
    client_of_alice: Client, play: Play, messages: list[dict[str, Any]]
) -> None:
    read = await sync_to_async(play)(said(120, "A title"))

    response = await client_of_alice.ask(*messages)

    assert response.json()["choices"][0]["message"]["content"] == "A title"
    assert [one["content"] for one in read()[0]["messages"]] == [one["content"] for one in messages]
    assert await Dialog.objects.acount() + await HealthReading.objects.acount() == 0


@pytest.mark.parametrize(
    ("messages", "more"),
    [
        ([user("### Task:\nGive a title.")], {}),
        ([user("### Task:\nAnswer the question.\n### Output:\nOne sentence.")], {}),
        ([user("Hello"), assistant("Hi."), user(TITLE)], {}),
        ([system("You are Ada."), user(TITLE)], {}),
        ([user(TITLE)], {"tools": [a_tool("weather")]}),
        ([system(COMMITTING), user("What does this prompt mean?")], {}),
        ([user(COMMITTING)], {}),
    ],
    ids=["a-task", "with-output", "in-a-conversation", "with-instructions", "with-tools", "asked-about", "quoted"],
)
async def test_the_same_words_of_a_persons_are_a_message(
    client_of_alice: Client, play: Play, messages: list[dict[str, Any]], more: dict[str, Any]
) -> None:
    await sync_to_async(play)(said(120, "Well."))

    await client_of_alice.ask(*messages, **more)

    assert await Dialog.objects.acount() == await Generation.objects.acount() == 1


async def test_what_is_streamed_to_somebody_is_a_message(client_of_alice: Client, play: Play) -> None:
    await sync_to_async(play)(said(120, "Well."))

    await client_of_alice.stream(user(TITLE))

    assert await Dialog.objects.acount() == 1


async def test_a_chore_that_is_too_long_is_made_to_fit(guarded_client: Client, play: Play) -> None:
    read = await sync_to_async(play)(said(120, "A title"))
    history = long_history(40)

    await guarded_client.ask(*history, user("A title, please."), headers=CHORE)

    sent = [one["content"] for one in read()[0]["messages"]]
    assert len("".join(sent)) < sum(len(one["content"]) for one in history) / 2
    assert (RULE in "".join(sent), sent[-1]) == (True, "A title, please.")
    assert await Dialog.objects.acount() == 0


async def test_one_long_text_keeps_its_beginning_and_its_end(guarded_client: Client, play: Play) -> None:
    read = await sync_to_async(play)(said(120, "feat: add f1"))
    diff = "\n".join(f"+{long_text(number)}" for number in range(200))

    await guarded_client.ask(system(COMMITTING), user(f"# Diffs:\n{diff}\n+the end"))

    _instructions, sent = (one["content"] for one in read()[0]["messages"])
    assert sent.startswith("# Diffs:\n+")
    assert sent.endswith("+the end")
    assert "characters left out here" in sent
    assert len(sent) < len(diff) / 2


async def test_what_a_client_is_about_to_replace_is_read_from_its_beginning(guarded_client: Client, play: Play) -> None:
    read = await sync_to_async(play)(said(120, "A summary"))
    history = long_history(40)

    await guarded_client.ask(*history, user("Summarise all this."), headers={"X-Dominds-Task": "chat-summary"})

    sent = [one["content"] for one in read()[0]["messages"]][1:]
    whole = [one["content"] for one in history]
    assert sent[:-2] == whole[: len(sent) - 2]
    assert len(sent) > len(whole) / 4
    assert sent[-2][:40] == whole[len(sent) - 2][:40]
    assert sent[-1] == "Summarise all this."


async def test_what_an_earlier_summary_of_the_clients_covers_gets_room_last(guarded_client: Client, play: Play) -> None:
    read = await sync_to_async(play)(said(120, "A summary"))
    covered, summary, rest = long_history(10), user("This is a summary of the first ten questions."), long_history(40)

    await guarded_client.ask(
        *covered, summary, *rest[20:], user("Summarise all this."), headers={"X-Dominds-Task": "compaction"}
    )

    sent = [one["content"] for one in read()[0]["messages"]][1:]
    assert sent[0] == summary["content"]
    assert sent[1:-2] == [one["content"] for one in rest[20:]][: len(sent) - 3]
    assert sent[-1] == "Summarise all this."


async def test_one_long_text_to_be_summarised_keeps_its_beginning(guarded_client: Client, play: Play) -> None:
    read = await sync_to_async(play)(said(120, "A summary"))
    said_so_far = "\n".join(f"# USER\n{long_text(number)}\n# ASSISTANT\nDone." for number in range(200))

    await guarded_client.ask(system(SUMMARISING), user(said_so_far))

    sent = read()[0]["messages"][1]["content"]
    beginning, _note, end = sent.partition("\n[… ")
    assert said_so_far.startswith(beginning)
    assert len(beginning) > 15 * len(end)
    assert said_so_far.endswith(end.partition("…]\n")[2])


async def test_a_chore_that_cannot_fit_is_refused_with_both_sizes(guarded_client: Client, play: Play) -> None:
    await sync_to_async(play)(said(120, "A title"))

    response = await guarded_client.ask(system("word " * 9000), user("A title."), headers=CHORE)

    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (400, "context_compaction_failed")
    assert "≈9," in error["message"]
    assert "there is room for 3,4" in error["message"]


def in_lmstudio(llm: LLM, url: str) -> None:
    llm.provider.kind, llm.provider.base_url = "lmstudio", url
    llm.provider.save()
    llm.context_length, llm.context_length_source, llm.optimal_max_tokens = None, "", None
    llm.compaction = "automatic"
    llm.save()


async def test_lm_studio_never_cuts_a_chore(client_of_alice: Client, llm: LLM) -> None:
    standin = LMStudioStandin(context=2600, cut_middle=True, words=20)
    with serving(standin.app()) as url:
        await sync_to_async(in_lmstudio)(llm, url)
        response = await client_of_alice.ask(*long_history(40), user("A title, please."), headers=CHORE)

    assert (response.status_code, standin.cuts) == (200, 0)
    assert await Dialog.objects.acount() == 0


async def test_where_compaction_is_off_a_chore_that_would_be_cut_is_refused_with_both_sizes(
    client_of_alice: Client, llm: LLM
) -> None:
    standin = LMStudioStandin(context=2600, cut_middle=True, words=20)
    with serving(standin.app()) as url:
        await sync_to_async(in_lmstudio)(llm, url)
        await LLM.objects.aupdate(compaction="off")
        response = await client_of_alice.ask(*long_history(40), user("A title, please."), headers=CHORE)

    assert (response.status_code, response.json()["error"]["code"]) == (400, "context_length_exceeded")
    assert "and 2,340 have room" in response.json()["error"]["message"]
    assert standin.sizes == []


@pytest.mark.parametrize("stream", [True, False])
async def test_lm_studio_without_its_model_is_sent_no_chore(client_of_alice: Client, llm: LLM, stream: bool) -> None:
    standin = LMStudioStandin(context=2600, words=20)
    standin.loaded = False
    with serving(standin.app()) as url:
        await sync_to_async(in_lmstudio)(llm, url)
        response = await client_of_alice.ask(user("A title."), headers=CHORE, stream=stream)

    assert (response.status_code, response.json()["error"]["code"]) == (400, "limit_unavailable")
    assert standin.sizes == []
