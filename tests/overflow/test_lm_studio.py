"""A person's chat with LM Studio: a model that is loaded anew, and staff who want no model asked what may go."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from dialogs.models import LLM, Agent, Dialog, LlmBounds, Provider
from dialogs.pages.writes import create_dialog
from health.models import CompactionRun
from tests.dialogs.driver.conftest import ask, drive_until_idle
from tests.dialogs.pages.views.forms import sent
from tests.dialogs.pages.views.pages import page
from tests.overflow.talk import RULES, Talk, prose
from tests.standins.lmstudio import LMStudioStandin
from tests.standins.serving import serving

SETTINGS = "/settings/context/"
WINDOW = 8_192
TALK = Talk(WINDOW, turns=20, windows=1.0)
ANSWER = prose(3, TALK.chars)


@pytest.fixture
def studio(transactional_db: None, agent: Agent) -> Iterator[LMStudioStandin]:
    standin = LMStudioStandin(context=WINDOW, answer=ANSWER)
    with serving(standin.app()) as url:
        Provider.objects.update(kind="lmstudio", base_url=url)
        LLM.objects.update(model_id=standin.model, context_length=None, optimal_max_tokens=None, compaction="automatic")
        yield standin


def test_what_it_refuses_then_is_compacted_for_the_window_that_it_tells(
    studio: LMStudioStandin, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However slow the test is, a reading of the window holds.
    monkeypatch.setattr("dialogs.llms.windows.FRESH_AS_LOADED", timedelta(minutes=1))
    dialog = create_dialog(owner=alice, agent=Agent.objects.select_related("llm").get())
    for number in range(1, 15):
        ask(dialog, TALK.turn(number))
        dialog = drive_until_idle(dialog)
    studio.context = WINDOW // 2

    ask(dialog, "Which berth is free?")
    dialog = drive_until_idle(dialog)

    assert studio.refused == 1
    assert dialog.courses.count() == 1
    assert_answered(dialog)
    # The number in its refusal is not believed: its own lists tell the window.
    assert LlmBounds.objects.get().known.words == ""
    LLM.objects.update(limits_read_at=timezone.now() - timedelta(minutes=2))
    ask(dialog, "And which tomorrow?")
    assert_answered(drive_until_idle(dialog))
    assert LLM.objects.get().detected_context_length == WINDOW // 2
    assert studio.refused == 1


@pytest.mark.parametrize("cut_middle", [False, True])
def test_a_model_that_is_loaded_anew_with_less_refuses_and_cuts_nothing(
    studio: LMStudioStandin, alice: User, cut_middle: bool
) -> None:
    """That takes longer than a reading of its window holds."""
    studio.cut_middle = cut_middle
    dialog = create_dialog(owner=alice, agent=Agent.objects.select_related("llm").get())
    for number in range(1, 15):
        ask(dialog, TALK.turn(number))
        dialog = drive_until_idle(dialog)
    studio.context = WINDOW // 2
    seconds_pass()

    ask(dialog, "Which berth is free?")
    dialog = drive_until_idle(dialog)

    assert_answered(dialog)
    assert (studio.refused, studio.cuts) == (0, 0)


def test_a_window_that_is_read_anew_at_every_step_disturbs_no_answer(
    studio: LMStudioStandin, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a model answers slowly: then a reading holds no longer when the answer comes."""
    monkeypatch.setattr("dialogs.llms.windows.FRESH_AS_LOADED", timedelta(0))
    dialog = create_dialog(owner=alice, agent=Agent.objects.select_related("llm").get())

    ask(dialog, "Which berth is free?")

    assert_answered(drive_until_idle(dialog))


def seconds_pass() -> None:
    LLM.objects.update(limits_read_at=timezone.now() - timedelta(seconds=6))


@pytest.mark.parametrize(("chosen", "is_asked"), [("pruning_agent", True), ("no_model", False)])
def test_staff_choose_whether_a_model_decides_what_goes(
    studio: LMStudioStandin, client: Client, alice: User, chosen: str, is_asked: bool
) -> None:
    User.objects.filter(pk=alice.pk).update(is_staff=True)
    client.force_login(alice)
    fields = sent(page(client, SETTINGS), "context-form")
    client.post(SETTINGS, {**fields, "lm_studio": chosen, "do": "save"})
    studio.context = WINDOW // 2
    dialog = create_dialog(owner=alice, agent=Agent.objects.select_related("llm").get())

    for number in range(1, TALK.turns + 1):
        ask(dialog, TALK.turn(number))
        dialog = drive_until_idle(dialog)
        assert_answered(dialog)

    runs = CompactionRun.objects.filter(status="applied")
    assert runs
    assert (len(studio.sizes) > TALK.turns) is is_asked
    assert {run.chain[0] for run in runs} == {"prune_with_agent" if is_asked else "trim_payloads"}
    assert all(rule in str(studio.asked[-1]) for rule in RULES.values())


FACT = "The key of the north gate hangs behind panel 4471."
QUESTION = "Behind which panel does the key of the north gate hang?"


def decides_what_goes(body: dict[str, Any]) -> str:
    """A model that as pruning agent drops what it is shown, but for the facts, and as agent answers from what it
    reads, which for all else is a long answer."""
    read = [str(message["content"]) for message in body["messages"]]
    if not read[-1].startswith("<history>"):
        panel = re.search(r"behind panel (\d+)", "\n".join(read[:-1]))
        return ANSWER if read[-1] != QUESTION else f"Behind panel {panel[1] if panel else 'unknown'}."
    shown = [json.loads(line) for line in read[-1].splitlines()[1:-1]]
    rounds = list(zip(shown[::2], shown[1::2], strict=False))
    drop = [one["id"] for pair in rounds if FACT not in pair[0]["content"] for one in pair]
    return json.dumps({"drop": drop, "summaries": [], "summary": "Notes from the yard."})


def test_a_question_about_the_beginning_is_answered_after_the_model_has_pruned(
    studio: LMStudioStandin, alice: User
) -> None:
    studio.context, studio.reply = WINDOW // 2, decides_what_goes
    dialog = create_dialog(owner=alice, agent=Agent.objects.select_related("llm").get())

    for said in ("Hello.", f"{FACT} Write it down.", *(TALK.turn(number) for number in range(2, TALK.turns))):
        ask(dialog, said)
        dialog = drive_until_idle(dialog)
    ask(dialog, QUESTION)
    dialog = drive_until_idle(dialog)

    pruned = [run for run in CompactionRun.objects.filter(status="applied") if pruned_by_agent(run)]
    assert pruned
    assert all(0.4 <= freed(run) <= 0.65 for run in pruned)
    assert dialog.current_leaf is not None
    assert dialog.current_leaf.content == "Behind panel 4471."
    assert studio.refused == 0


def pruned_by_agent(run: CompactionRun) -> bool:
    return any(step["phase"] == "prune_with_agent" and step["changed"] for step in run.steps)


def freed(run: CompactionRun) -> float:
    return 1 - (run.estimated_after or 0) / (run.estimated_before or 1)


def assert_answered(dialog: Dialog) -> None:
    assert dialog.current_leaf is not None
    assert dialog.current_leaf.content == ANSWER
