"""A client's conversation as a file: whole when it leaves, and written in the browser when it comes back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User

from dialogs.agents.writes import TASKDOC_CHARS, add_reminder
from dialogs.api.writes.api_keys import create_key
from dialogs.common.errors import DialogError
from dialogs.compaction.work import perform
from dialogs.compaction.writes.manual_compaction import request
from dialogs.context.border import chat_request, read_context
from dialogs.models import LLM, Agent, ApiKey, Blob, Dialog, ToolCall
from dialogs.models.reminder import Author
from dialogs.transcript.reads.path import course_branch
from dialogs.transfer import export_json, export_markdown, import_dialog
from dialogs.turns.reads.turns import dialog_to_drive
from dialogs.turns.writes.messages import post_message
from tests.builders import keep_blob
from tests.client_dialogs import A_TOOL, answered, ask, assistant, image, picture, result, user
from tests.dialogs.compacting_builders import long_text

SYSTEM = {"role": "system", "content": "Be brief."}
WEATHER = (user("Weather?"), assistant(None, ("c1", "weather"), ("c2", "wind")))


@pytest.fixture
def key(alice: User, agent: Agent) -> ApiKey:
    return create_key(owner=alice, name="laptop")[0]


def exported(dialog: Dialog) -> Any:
    return json.loads(json.dumps(export_json(dialog)))


def copied(dialog: Dialog, owner: User) -> Dialog:
    """The dialog that is made from its file, as a driver reads it."""
    return dialog_to_drive(import_dialog(owner=owner, data=exported(dialog)).pk)


def sent(dialog: Dialog) -> list[tuple[str, str]]:
    context = read_context(dialog, course_branch(dialog.current_leaf))
    return [(message.role, message.content) for message in chat_request(context).messages]


def test_what_the_client_asked_for_is_in_the_file_and_nothing_of_the_key(key: ApiKey, llm: LLM) -> None:
    dialog = ask(key, llm, SYSTEM, user("Hello"), tools=(A_TOOL,), options={"temperature": 0.5}, chat="Mine")

    file = exported(dialog)

    assert file["client"] == {
        "model": "scripted/tiny",
        "instructions": "Be brief.",
        "tools": [A_TOOL],
        "options": {"temperature": 0.5},
        "max_output_tokens": None,
        "offers_recall": False,
        "chat": "Mine",
    }
    assert [secret for secret in ("laptop", key.prefix) if secret in json.dumps(file)] == []


def test_reminders_of_the_conversation_go_along(alice: User, llm: LLM, agent: Agent) -> None:
    dialog = ask(create_key(owner=alice, name="phone", offers_recall=True)[0], llm, user("Hello"))
    answered(dialog)
    add_reminder(dialog=dialog, content="Port 8080", author=Author.AGENT)

    assert [one.content for one in copied(dialog, alice).reminders.all()] == ["Port 8080"]


def test_the_copy_is_written_in_the_browser(key: ApiKey, llm: LLM, agent: Agent, alice: User) -> None:
    dialog = ask(key, llm, SYSTEM, user("Hello"), {"role": "system", "content": "It is Monday."}, user("And now?"))
    answered(dialog, "Fine.")

    copy = copied(dialog, alice)
    post_message(dialog=copy, content="I go on.")

    assert not copy.is_client_driven
    assert (copy.agent, copy.llm, copy.taskdoc) == (agent, llm, "Be brief.")
    assert exported(copy)["client"] is None
    told = sent(dialog_to_drive(copy.pk))
    assert told[0][0] == "system"
    assert "Be brief." in told[0][1]
    assert told[1:] == [
        ("user", "Hello"),
        ("system", "It is Monday."),
        ("user", "And now?"),
        ("assistant", "Fine."),
        ("user", "I go on."),
    ]


def test_the_copy_is_its_owners_and_no_client_finds_it(key: ApiKey, llm: LLM, bob: User, alice: User) -> None:
    dialog = ask(key, llm, user("Hello"))
    answered(dialog)
    assert copied(dialog, bob).owner == bob
    copied(dialog, alice)

    assert ask(key, llm, user("Hello"), assistant("Hi."), user("Go on")) == dialog


def test_instructions_that_are_too_long_for_a_taskdoc_are_cut_and_say_so(key: ApiKey, llm: LLM, alice: User) -> None:
    long = {"role": "system", "content": "x" * (TASKDOC_CHARS + 1)}

    copy = copied(ask(key, llm, long, user("Hello")), alice)

    assert len(copy.taskdoc) == TASKDOC_CHARS
    assert copy.taskdoc.endswith("x\n[cut off: 100,001 characters in all]")


def test_an_image_travels_along_and_is_kept_once(key: ApiKey, llm: LLM, alice: User) -> None:
    parts = [{"type": "text", "text": "What is it?"}, picture(bytes_more=300)]
    dialog = ask(key, llm, user(parts))
    file = exported(dialog)
    Blob.objects.all().delete()

    copy = dialog_to_drive(import_dialog(owner=alice, data=file).pk)

    assert file["messages"][0]["parts"]["wire"]["content"] == parts
    assert "base64" not in json.dumps(copy.messages.get().parts)
    wired = chat_request(read_context(copy, course_branch(copy.current_leaf))).messages[-1]
    assert list(wired.parts) == parts


def test_rounds_that_are_whole_stay_calls(key: ApiKey, llm: LLM, alice: User) -> None:
    dialog = ask(key, llm, *WEATHER, result("c1", "Rain."), result("c2", "None."))
    answered(dialog, "It rains.")

    copy = copied(dialog, alice)

    calls = ToolCall.objects.filter(message__dialog=copy)
    assert [(call.name, call.status, call.result_message and call.result_message.content) for call in calls] == [
        ("weather", "done", "Rain."),
        ("wind", "done", "None."),
    ]


def test_a_call_that_waits_for_the_client_is_withdrawn(key: ApiKey, llm: LLM, alice: User) -> None:
    dialog = ask(key, llm, *WEATHER)

    copy = copied(dialog, alice)

    calls = ToolCall.objects.filter(message__dialog=copy)
    assert {call.status for call in calls} == {"withdrawn"}
    assert [role for role, _text in sent(copy)[1:]] == ["user", "assistant", "tool", "tool"]
    assert all("had not sent the result" in text for _role, text in sent(copy)[3:])


BROKEN = {
    "in another order": (*WEATHER, result("c2", "None."), result("c1", "Rain.")),
    "one missing": (*WEATHER, result("c1", "Rain.")),
    "passed over": (*WEATHER, user("Never mind.")),
    "of a call that is not there": (user("Weather?"), result("c9", "Rain.")),
    "without an id": (user("Weather?"), assistant("I look.", ("", "weather"))),
    "with one id twice": (user("Weather?"), assistant(None, ("c1", "weather"), ("c1", "wind")), result("c1", "Rain.")),
}


@pytest.mark.parametrize("history", BROKEN.values(), ids=BROKEN)
def test_rounds_that_no_provider_takes_are_told_in_words(
    key: ApiKey, llm: LLM, alice: User, history: tuple[dict[str, Any], ...]
) -> None:
    dialog = ask(key, llm, *history)
    answered(dialog, "So.")

    copy = copied(dialog, alice)

    assert not ToolCall.objects.filter(message__dialog=copy).exists()
    told = "\n".join(text for _role, text in sent(copy))
    for call in ToolCall.objects.filter(message__dialog=dialog):
        assert f"[called {call.name} with {{}}]" in told
    for message in dialog.messages.exclude(content=""):
        assert message.content in told
    assert {role for role, _text in sent(copy)} <= {"system", "user", "assistant"}


def test_what_was_compacted_stays_compacted(key: ApiKey, llm: LLM, alice: User) -> None:
    turns = [turn for at in range(12) for turn in (user(long_text(at)), assistant(long_text(at + 500)))]
    dialog = ask(key, llm, *turns, user("And now?"))
    answered(dialog)
    run = request(dialog=dialog, by=alice)
    perform(run.pk, embedder="static")

    copy = copied(dialog, alice)

    head = copy.courses.get().head_run
    assert head is not None
    assert head.estimated_after is not None
    assert len(head.view) < len(turns)


@pytest.mark.parametrize(
    "wire",
    [
        None,
        [],
        {"name": None},
        {"name": 5},
        {"content": None},
        {"content": "text"},
        {"content": [5]},
        {"content": [{"type": "image_url"}]},
        {"content": [{"type": "image_url", "image_url": {"url": {"blob": "0" * 64}}}]},
        {"other": 1},
    ],
    ids=str,
)
def test_parts_that_the_api_would_not_take_are_refused(key: ApiKey, llm: LLM, alice: User, wire: Any) -> None:
    file = exported(ask(key, llm, user([picture()])))
    file["messages"][0]["parts"]["wire"] = wire

    with pytest.raises(DialogError, match="wire must be content parts"):
        import_dialog(owner=alice, data=file)


def test_a_file_cannot_name_what_is_kept_here_already(key: ApiKey, llm: LLM, bob: User) -> None:
    file = exported(ask(key, llm, user([picture()])))
    secret = {"blob": keep_blob("data:image/png;base64,c2VjcmV0")}
    file["messages"][0]["parts"]["wire"] = {"content": [{"type": "file", "file": {"file_data": secret}}]}

    with pytest.raises(DialogError, match="wire must be content parts"):
        import_dialog(owner=bob, data=file)


def test_markdown_tells_instructions_names_attachments_and_lost_results(key: ApiKey, llm: LLM) -> None:
    hello = user([{"type": "text", "text": "Hello"}, picture(), image("https://a.example/x.png")], name="Bea")
    dialog = ask(key, llm, SYSTEM, hello, result("c9", "Rain."))

    text = export_markdown(dialog)

    assert "## Instructions of the client\n\nBe brief." in text
    assert "### User Bea · " in text
    assert "*Attached, and not in this file: image/png*" in text
    assert "*Attached, and not in this file: https://a.example/x.png*" in text
    assert "### Result of a tool · " in text
    assert "Rain." in text
