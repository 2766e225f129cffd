"""Servers whose chat templates refuse what does not alternate: nobody notices, in the browser nor through `/v1`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from dialogs.driver.run import drive
from dialogs.models import LLM, Dialog, Provider
from dialogs.turns.writes.autonomous import start_run
from dialogs.turns.writes.messages import post_message
from tests.dialogs.driver.conftest import ask, ask_and_drive, drive_until_idle
from tests.overflow.conftest import Build
from tests.standins.compatible import CompatibleStandin, Lists, Reply
from tests.standins.serving import serving
from tests.standins.templates import TEMPLATES, WITH_TOOLS

Serve = Callable[..., CompatibleStandin]


@pytest.fixture
def serve(transactional_db: None, provider: Provider, llm: LLM) -> Iterator[Serve]:
    """A stand-in behind the dialog's LLM, with a window in which an agent has all its tools."""
    opened: list[Any] = []

    def build(template: str, reply: Callable[[Mapping[str, Any]], Reply]) -> CompatibleStandin:
        standin = CompatibleStandin(window=30_000, refuses=TEMPLATES[template], reply=reply, model=llm.model_id)
        opened.append(serving(standin.app()))
        provider.kind, provider.base_url = "openai", f"{opened[-1].__enter__()}/v1"
        provider.save()
        LLM.objects.update(context_length=30_000)
        return standin

    yield build
    for one in opened:
        one.__exit__(None, None, None)


def notes_then_answers(body: Mapping[str, Any]) -> Reply:
    """Writes a reminder, unless it has just done so."""
    if body["messages"][-1]["role"] == "tool" or not body.get("tools"):
        return Reply(text="Done.")
    return Reply(calls=[("add_reminder", {"content": f"Step {len(body['messages'])}"})])


def talks(body: Mapping[str, Any]) -> Reply:
    return Reply(text="Done.")


def roles(standin: CompatibleStandin) -> list[str]:
    return [one["role"] for one in standin.asked[-1]["messages"]]


@pytest.mark.parametrize("template", WITH_TOOLS)
def test_what_is_typed_between_two_rounds_is_answered(dialog: Dialog, serve: Serve, template: str) -> None:
    standin = serve(template, notes_then_answers)
    ask(dialog, "Tidy the tables.")
    async_to_sync(drive)(dialog.pk)
    post_message(dialog=dialog, content="WAIT, do not touch the database!")

    drive_until_idle(dialog)
    ask_and_drive(dialog, "And now?")

    assert len(standin.invalid) <= 1, standin.invalid
    assert dialog.paused_by == ""
    assert "WAIT, do not touch the database!" in json.dumps(standin.asked[-1])
    assert roles(standin)[-1] in ("user", "tool")


@pytest.mark.parametrize("template", ["gemma 2", "gemma 3", "mistral nemo", "ministral", "qwen"])
def test_an_agent_that_works_by_itself_goes_on(dialog: Dialog, serve: Serve, template: str) -> None:
    LLM.objects.update(tool_calling="off")
    standin = serve(template, talks)
    start_run(dialog=dialog, goal="Count the boats.", max_generations=4)

    drive_until_idle(dialog)

    assert len(standin.invalid) <= 2, standin.invalid
    assert dialog.paused_by == "limit"
    assert dialog.messages.filter(role="assistant").count() == 4


def test_a_dialog_with_calls_goes_on_with_a_model_that_has_no_tools(dialog: Dialog, serve: Serve) -> None:
    serve("mistral nemo", notes_then_answers)
    ask_and_drive(dialog, "Tidy the tables.")
    LLM.objects.update(tool_calling="off", message_shape="")
    standin = serve("gemma 3", talks)

    ask_and_drive(dialog, "And now?")

    assert dialog.paused_by == ""
    assert "[Called add_reminder with" in standin.asked[-1]["messages"][2]["content"]


def test_what_was_learned_is_asked_for_once_only(dialog: Dialog, serve: Serve, llm: LLM) -> None:
    standin = serve("gemma 2", talks)
    LLM.objects.update(tool_calling="off")
    for _ in range(3):
        ask_and_drive(dialog)

    llm.refresh_from_db()
    assert llm.message_shape == "no_system"
    assert len(standin.invalid) == 1


def test_a_server_that_refuses_whatever_is_sent_is_given_up(dialog: Dialog, serve: Serve) -> None:
    standin = serve("mistral nemo", talks)
    standin.refuses = lambda _messages, _tools: "Conversation roles must alternate user/assistant/user/assistant/..."

    ask_and_drive(dialog)

    assert (len(standin.invalid), dialog.paused_by) == (2, "failure")


LOOK = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
GREETED = [{"role": "assistant", "content": "Ahoy, I am the harbour master."}]


@pytest.mark.parametrize("template", ["mistral nemo", "mistral small", "ministral", "gemma 3", "gemma 2"])
def test_a_client_whose_history_does_not_alternate_is_answered_over_20_turns(build: Build, template: str) -> None:
    home = build(window=8_192, lists=Lists.MODELS, refuses=TEMPLATES[template])
    caller = home.caller()
    caller.messages += GREETED

    for number in range(20):
        # Its client lost an answer and asks again.
        caller.messages.append({"role": "user", "content": f"Are you there? {number}"})
        assert caller.say(f"Boat {number} needs a berth. " + "The wind is from the north. " * 60)

    assert len(home.standin.invalid) == 1, home.standin.invalid
    assert home.compactions() > 0


def test_an_answer_without_a_word_ends_no_conversation(build: Build) -> None:
    """As where a model only thought: what came of it goes back as an empty answer, which many servers refuse."""
    home = build(window=8_192, lists=Lists.MODELS)
    caller = home.caller()
    caller.say("Which berth is free?")
    caller.messages[-1]["content"] = ""

    assert caller.say("And which one tomorrow?")
    assert caller.say("And on Sunday?")

    assert len(home.standin.invalid) == 1, home.standin.invalid
    assert "Which berth is free?" in home.last.text


@pytest.mark.parametrize("broken", ['{"berth": "no', "", "[3]", '{"berth": NaN}', "north"])
def test_a_call_with_broken_arguments_ends_no_conversation(build: Build, broken: str) -> None:
    """As one is that a limit cut off. Servers read the arguments of all calls for each request."""
    home = build(window=8_192, lists=Lists.MODELS)
    caller = home.caller(tools=[LOOK])
    call = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": broken}}
    caller.messages += [
        {"role": "user", "content": "Is the north berth free?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "These are no arguments."},
    ]

    assert caller.say("And the south berth?")

    assert home.standin.invalid == []
    assert json.dumps(broken)[1:-1] in home.last.body["messages"][2]["tool_calls"][0]["function"]["arguments"]


def test_what_a_client_asks_beside_its_conversation_is_shaped_too(build: Build) -> None:
    home = build(window=8_192, lists=Lists.MODELS, refuses=TEMPLATES["gemma 2"])
    assert home.caller().say("Which berth is free?")

    # As a front end does for a title.
    beside = home.caller(extra_headers={"X-Dominds-Task": "title_generation"})
    assert beside.say("Name this chat.")

    assert len(home.standin.invalid) == 1, home.standin.invalid
