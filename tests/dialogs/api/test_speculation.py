"""A speculative request equals the one that the driver makes. None is made where something may come between."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from dialogs.api.canonical import ClientRequest
from dialogs.api.reads.clients import longest_known
from dialogs.api.speculation import SpeculativeRequest, speculate
from dialogs.api.writes.client_turns import Target, direct_agent
from dialogs.context.border import chat_request, read_context
from dialogs.context.estimate import offered_tools
from dialogs.models import LLM, Agent, ApiKey, Course, Dialog
from dialogs.models.provider import ProviderKind
from dialogs.providers.base import ChatRequest
from dialogs.transcript.reads.path import course_branch
from dialogs.turns.reads.turns import dialog_to_drive
from health.loops import EVERY_CALLS
from tests.client_dialogs import A_TOOL, PNG, answered, ask, assistant, image, request_of, result, user
from tests.dialogs.compaction_runs import an_applied_run

WORDS = ("Hello", "  two\n\nlines \n", "\u4f60\u597d", "", "<think>x</think>y", "[Dominds] not a notice")


@pytest.fixture
def key(key: tuple[ApiKey, str]) -> ApiKey:
    return key[0]


def ahead(key: ApiKey, target: Target, request: ClientRequest) -> SpeculativeRequest | None:
    return speculate(key=key, target=target, request=request, known=longest_known(owner=key.owner, request=request))


def asked_by_the_driver(dialog: Dialog) -> ChatRequest:
    dialog = dialog_to_drive(dialog.pk)
    context = read_context(dialog, course_branch(dialog.current_leaf))
    return chat_request(context, tools=offered_tools(dialog))


def turn(dice: random.Random, number: int) -> list[dict[str, Any]]:
    """What a client says until the next answer is due, with what it brings along of earlier answers."""
    said = [user(f"{dice.choice(WORDS)} {number}")]
    if dice.random() < 0.3:
        calls = [(f"c{number}-{at}", "weather") for at in range(dice.randint(1, 3))]
        said += [assistant(dice.choice((None, "Looking.")), *calls), *(result(one, "rain") for one, _name in calls)]
    if dice.random() < 0.2:
        said.append({"role": "system", "content": "Be brief."})
    return said


@pytest.mark.parametrize("seed", range(40))
def test_a_speculative_request_is_the_one_the_driver_makes(key: ApiKey, agent: Agent, llm: LLM, seed: int) -> None:
    dice = random.Random(seed)
    more = dice.choice(({}, {"tools": (A_TOOL,), "options": {"temperature": 0.5}}, {"max_output_tokens": 50}))
    history = [{"role": "system", "content": "You are a pirate."}] if dice.random() < 0.5 else []
    speaking_to = dice.choice((None, agent))

    for number in range(dice.randint(1, 4)):
        history += turn(dice, number)
        target = Target(speaking_to or direct_agent(llm), llm)
        found = ahead(key, target, request_of(key, llm, *history, agent=speaking_to, **more))
        dialog = ask(key, llm, *history, agent=speaking_to, **more)

        assert found is not None
        assert found.request == asked_by_the_driver(dialog)
        answered(dialog, f"Answer {number}.")
        history.append(assistant(f"Answer {number}."))
    assert Dialog.objects.count() == 1


@pytest.mark.parametrize("role", ["user", "system", "developer"])
def test_calls_that_only_an_answer_can_make_are_part_of_no_other_speculative_request(
    key: ApiKey, agent: Agent, llm: LLM, role: str
) -> None:
    odd = assistant("Hm.", ("c1", "weather")) | {"role": role}
    history = [user("Hello"), odd, user("And now?")]
    found = ahead(key, Target(agent, llm), request_of(key, llm, *history, agent=agent))

    dialog = ask(key, llm, *history, agent=agent)

    assert found is not None
    assert found.request == asked_by_the_driver(dialog)


def a_window_that_it_may_not_fit(agent: Agent, llm: LLM) -> None:
    llm.compaction, llm.context_length = "automatic", 100


def a_line(agent: Agent, llm: LLM) -> None:
    llm.provider.max_concurrent = 1


def lm_studio(agent: Agent, llm: LLM) -> None:
    llm.provider.kind = ProviderKind.LMSTUDIO


def ollama_without_a_window(agent: Agent, llm: LLM) -> None:
    llm.provider.kind, llm.context_length = ProviderKind.OLLAMA, None


@pytest.mark.parametrize("held_up", [a_window_that_it_may_not_fit, a_line, lm_studio, ollama_without_a_window])
def test_there_is_no_speculative_request_where_the_driver_must_look_first(
    key: ApiKey, agent: Agent, llm: LLM, held_up: Callable[[Agent, LLM], None]
) -> None:
    request = request_of(key, llm, user("Hello"), agent=agent)
    assert ahead(key, Target(agent, llm), request)

    held_up(agent, llm)

    assert ahead(key, Target(agent, llm), request) is None


def test_there_is_no_speculative_request_of_what_is_kept_apart(key: ApiKey, agent: Agent, llm: LLM) -> None:
    picture = user([image(f"data:image/png;base64,{PNG}")])

    assert ahead(key, Target(agent, llm), request_of(key, llm, picture, agent=agent)) is None


def busy(dialog: Dialog) -> None:
    Dialog.objects.filter(pk=dialog.pk).update(wake_seq=99)


def due_for_a_look(dialog: Dialog) -> None:
    Dialog.objects.filter(pk=dialog.pk).update(unchecked_calls=EVERY_CALLS)


def with_a_view(dialog: Dialog) -> None:
    Course.objects.filter(dialog=dialog).update(head_run=an_applied_run(dialog))


@pytest.mark.parametrize("changed", [busy, due_for_a_look, with_a_view])
def test_there_is_no_speculative_request_where_the_conversation_stands_otherwise(
    key: ApiKey, agent: Agent, llm: LLM, changed: Callable[[Dialog], None]
) -> None:
    dialog = ask(key, llm, user("Hello"), agent=agent)
    answered(dialog)
    request = request_of(key, llm, user("Hello"), assistant("Hi."), user("Well?"), agent=agent)
    assert ahead(key, Target(agent, llm), request)

    changed(dialog)

    assert ahead(key, Target(agent, llm), request) is None


def test_there_is_no_speculative_request_of_what_was_asked_before(key: ApiKey, agent: Agent, llm: LLM) -> None:
    messages = (user("Hello"), assistant("Hi."), user("Well?"))
    answered(ask(key, llm, *messages, agent=agent))

    assert ahead(key, Target(agent, llm), request_of(key, llm, *messages, agent=agent)) is None
