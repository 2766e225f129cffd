"""`recall` and reminders for agents behind `/v1`, where the key offers them: the model calls, Dominds answers, the
client sees nothing of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.test import Client as DjangoClient

from dialogs.agents.writes import add_reminder
from dialogs.models import LLM, Dialog, Reminder
from dialogs.models.reminder import Author
from tests.dialogs.api.conftest import Client, MakeKey, Play, a_tool, assistant, calling, said, text_of, user
from tests.dialogs.api.test_failing import failing
from tests.dialogs.compacting_builders import long_text
from tests.dialogs.compaction_runs import an_applied_run
from tests.dialogs.driver.conftest import a_call

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]

RECALLING = calling(130, "recall", '{"query": "boiler"}')
HISTORY = [user("The boiler has 71 degrees."), assistant("One."), user("Where?")]


@pytest.fixture
async def client(make_key: MakeKey, client_of_alice: Client, play: Play) -> Client:
    """With a key that offers recall; its first question was answered and compacted away."""
    _key, secret = await sync_to_async(make_key)(offers_recall=True)
    client = Client(secret)
    await sync_to_async(play)(said(120, "One."))
    await client.ask(*HISTORY[:1])
    await sync_to_async(_compact)()
    return client


def _compact() -> None:
    dialog = Dialog.objects.get()
    gone = dialog.messages.order_by("seq").values_list("pk", flat=True)[0]
    an_applied_run(dialog, view=[{"kind": "summary", "content": "A question.", "covers": [gone]}], removed=[gone])


def names(request: dict[str, Any]) -> list[str]:
    return [tool["function"]["name"] for tool in request.get("tools") or ()]


async def test_it_is_offered_once_a_client_leaves_messages_out_and_finds_these(
    make_key: MakeKey, llm: LLM, play: Play
) -> None:
    _key, secret = await sync_to_async(make_key)(offers_recall=True)
    script = [said(120, f"Answer {at}. {long_text(at, 1)}") for at in range(3)]
    read = await sync_to_async(play)(*script, RECALLING, said(140, "71 degrees."))
    history = [user("The boiler has 71 degrees.")]
    for words in ("And the gate?", "And the oven?", "How warm is it?"):
        answer = await Client(secret).ask(*history)
        history += [assistant(answer.json()["choices"][0]["message"]["content"]), user(words)]

    answer = await Client(secret).ask(*history[2:])

    assert answer.json()["choices"][0]["message"]["content"] == "71 degrees."
    assert [names(request)[:1] for request in read()] == [[], [], [], ["recall"], ["recall"]]
    assert "71 degrees" in read()[-1]["messages"][-1]["content"]


async def test_a_stream_holds_the_answer_alone_and_the_usage_of_the_last_request(client: Client, play: Play) -> None:
    read = await sync_to_async(play)(RECALLING, said(140, ["It has ", "71 degrees."]))

    chunks = await client.stream(*HISTORY, stream_options={"include_usage": True})

    assert text_of(chunks) == "It has 71 degrees."
    assert "tool_calls" not in json.dumps(chunks)
    assert [choice["finish_reason"] for chunk in chunks for choice in chunk["choices"] if choice["finish_reason"]] == [
        "stop"
    ]
    assert chunks[-1]["usage"]["prompt_tokens"] == 140
    asked, again = read()
    assert names(asked)[0] == "recall"
    assert "71 degrees" in again["messages"][-1]["content"]


async def test_what_was_looked_up_stays_before_the_model_in_the_next_turn(client: Client, play: Play) -> None:
    read = await sync_to_async(play)(RECALLING, said(140, "71 degrees."), said(150, "Yes."))

    found = (await client.ask(*HISTORY)).json()
    await client.ask(*HISTORY, assistant("71 degrees."), user("Sure?"))

    assert found["choices"][0]["message"] == {"role": "assistant", "content": "71 degrees."}
    assert [one["role"] for one in read()[2]["messages"]][-5:] == ["user", "assistant", "tool", "assistant", "user"]
    assert await Dialog.objects.acount() == 1


async def test_words_before_the_look_up_and_the_answer_after_it_are_one_message(client: Client, play: Play) -> None:
    looking = said(130, "Let me look.", tool_calls=[a_call("recall", '{"query": "boiler"}')], finish="tool_calls")
    await sync_to_async(play)(looking, said(140, "71 degrees."), said(150, "Yes."))

    first = (await client.ask(*HISTORY)).json()["choices"][0]["message"]["content"]
    await client.ask(*HISTORY, assistant(first), user("Sure?"))

    assert first == "Let me look.\n\n71 degrees."
    assert await Dialog.objects.acount() == 1


async def test_a_tool_of_the_clients_that_has_its_name_is_the_clients(client: Client, play: Play) -> None:
    read = await sync_to_async(play)(RECALLING)

    body = (await client.ask(*HISTORY, tools=[a_tool("recall")])).json()

    assert [call["function"]["name"] for call in body["choices"][0]["message"]["tool_calls"]] == ["recall"]
    assert names(read()[0]) == ["recall"]


async def test_beside_a_call_of_the_clients_the_client_gets_its_own_and_goes_on(client: Client, play: Play) -> None:
    calls = [a_call("look", "{}", "c1"), a_call("recall", '{"query": "boiler"}', "c2")]
    read = await sync_to_async(play)(said(130, "", tool_calls=calls, finish="tool_calls"), said(140, "Done."))

    first = (await client.ask(*HISTORY, tools=[a_tool("look")])).json()["choices"][0]["message"]
    result = {"role": "tool", "tool_call_id": "c1", "content": "A boiler."}
    second = (await client.ask(*HISTORY, first, result, tools=[a_tool("look")])).json()

    assert [call["id"] for call in first["tool_calls"]] == ["c1"]
    assert second["choices"][0]["message"]["content"] == "Done."
    results = {one["tool_call_id"]: one["content"] for one in read()[1]["messages"] if one["role"] == "tool"}
    assert results["c1"] == "A boiler."
    assert "Call recall alone" in results["c2"]
    assert await Dialog.objects.acount() == 1


async def test_a_model_that_only_looks_things_up_is_told_to_answer_and_its_request_ends(
    client: Client, play: Play, settings: LazySettings
) -> None:
    settings.DOMINDS_MAX_TOOL_ROUNDS = 3
    read = await sync_to_async(play)(*[RECALLING] * 3, said(140, "71 degrees."))

    body = (await client.ask(*HISTORY)).json()

    assert body["choices"][0]["message"]["content"] == "71 degrees."
    assert "too many rounds" in read()[3]["messages"][-1]["content"]


@pytest.mark.parametrize(
    ("call", "requests"),
    [
        (RECALLING, 6),  # rounds of calls that are made
        (calling(130, "recall", '{"query": 5}'), 4),  # arguments that do not fit its schema
        (calling(130, "recall", '{"query": '), 4),  # no JSON
    ],
)
async def test_one_that_goes_on_all_the_same_ends_with_an_error_that_says_why(
    client: Client, play: Play, settings: LazySettings, call: dict[str, Any], requests: int
) -> None:
    settings.DOMINDS_MAX_TOOL_ROUNDS = 5
    read = await sync_to_async(play)(*[call] * 9)

    response = await client.ask(*HISTORY)

    error = response.json()["error"]
    assert (response.status_code, error["code"], len(read())) == (400, "tool_rounds_used_up", requests)
    assert "last recall" in error["message"]


async def test_one_that_corrects_itself_is_answered(client: Client, play: Play) -> None:
    wrong = [calling(130, "recall", arguments) for arguments in ("{", "{", "{}", '{"query": 5}')]
    await sync_to_async(play)(*wrong, RECALLING, said(140, "71 degrees."))

    body = (await client.ask(*HISTORY)).json()

    assert body["choices"][0]["message"]["content"] == "71 degrees."


async def test_a_server_that_takes_no_tools_is_asked_without_it(client: Client, play: Play) -> None:
    read = await sync_to_async(play)(failing("tools_refused"), said(140, "I do not know."))

    body = (await client.ask(*HISTORY)).json()

    assert body["choices"][0]["message"]["content"] == "I do not know."
    assert "recall" in names(read()[0])
    assert names(read()[1]) == []


async def test_a_server_that_refuses_the_clients_own_tools_is_told_to_the_client(client: Client, play: Play) -> None:
    await sync_to_async(play)(failing("tools_refused"))

    response = await client.ask(*HISTORY, tools=[a_tool("look")])

    assert response.json()["error"]["code"] == "tools_refused"


# --- Reminders, with the same setting ----------------------------------------------------------

NOTES = ["add_reminder", "update_reminder", "delete_reminder"]
NOTING = calling(130, "add_reminder", '{"content": "The boiler is in the cellar."}')


@pytest.fixture
async def roomy(client: Client) -> Client:
    """The same in a window in which tools for reminders cost little."""
    await LLM.objects.aupdate(context_length=100_000)
    return client


async def test_reminders_are_offered_beside_it_where_there_is_room(roomy: Client, play: Play) -> None:
    read = await sync_to_async(play)(said(130, "In the cellar."))

    await roomy.ask(*HISTORY)

    assert names(read()[0]) == ["recall", *NOTES]


async def test_a_reminder_stands_in_every_later_request_and_the_client_sees_nothing_of_it(
    roomy: Client, play: Play
) -> None:
    read = await sync_to_async(play)(NOTING, said(140, "Noted."), said(150, "In the cellar."))

    first = (await roomy.ask(user("The boiler has 71 degrees."), *HISTORY[1:])).json()["choices"][0]["message"]
    await roomy.ask(*HISTORY, assistant("Noted."), user("Where is it?"))

    assert first == {"role": "assistant", "content": "Noted."}
    system = read()[2]["messages"][0]
    assert system["role"] == "system"
    assert "The boiler is in the cellar." in system["content"]
    assert await Dialog.objects.acount() == 1


async def test_a_clients_own_tool_for_reminders_stays_the_clients(roomy: Client, play: Play) -> None:
    read = await sync_to_async(play)(NOTING)

    body = (await roomy.ask(*HISTORY, tools=[a_tool("add_reminder")])).json()

    assert [call["function"]["name"] for call in body["choices"][0]["message"]["tool_calls"]] == ["add_reminder"]
    assert names(read()[0]) == ["add_reminder", "recall", "update_reminder", "delete_reminder"]
    assert not await Reminder.objects.aexists()


async def test_who_owns_the_conversation_sees_and_removes_them_in_the_browser(
    roomy: Client, play: Play, alice: User, bob: User
) -> None:
    await sync_to_async(play)(NOTING, said(140, "Noted."))
    await roomy.ask(*HISTORY)
    here = f"/dialogs/{(await Dialog.objects.aget()).pk}/"

    def look_and_remove() -> tuple[str, int, int]:
        browser, other = DjangoClient(), DjangoClient()
        browser.force_login(alice)
        other.force_login(bob)
        shown = browser.get(here).content.decode()
        statuses = [one.post(f"{here}reminders/1/remove/").status_code for one in (other, browser)]
        return shown, statuses[0], statuses[1]

    shown, foreign, own = await sync_to_async(look_and_remove)()

    assert "The boiler is in the cellar." in shown
    assert 'id="taskdoc"' not in shown
    assert (foreign, own) == (404, 302)
    assert not await Reminder.objects.filter(removed_at=None).aexists()


async def test_a_reminder_that_is_told_shortened_is_read_whole(client: Client, play: Play) -> None:
    """It is above a quarter of the room; in so small a one no reminder can be written, but what there is is read."""
    whole = f"The boiler is in the cellar. {long_text(1, 80)}"
    read = await sync_to_async(play)(calling(130, "read_reminder", '{"number": 1}'), said(140, "Noted."))
    await LLM.objects.aupdate(context_length=6_000, compaction="automatic")
    await sync_to_async(add_reminder)(dialog=await Dialog.objects.aget(), content=whole, author=Author.PERSON)

    await client.ask(*HISTORY)

    asked, again = read()
    assert names(asked) == ["recall", "read_reminder"]
    assert "### Reminder 1 [shortened for lack of room to " in asked["messages"][0]["content"]
    assert again["messages"][-1]["content"] == whole
