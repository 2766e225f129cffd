"""What comes first when a context fills: the history is compacted, or the agent is reminded, as its settings say."""

from __future__ import annotations

import pytest

from dialogs.models import LLM, Agent, Dialog, RemediationPrompt
from dialogs.pages.writes import set_own_tools
from dialogs.turns.reads.remediation import remediation_status
from dialogs.turns.writes.autonomous import start_run
from health.models import CompactionRun
from tests.dialogs.compacting_builders import a_history, guard
from tests.dialogs.driver.conftest import Play, ask_and_drive, calling, drive_until_idle, said

pytestmark = pytest.mark.django_db(transaction=True)
WINDOW = 400_000
HEALTHY, EARLY, CAUTION = said(50_000, "Done."), said(100_001, "Done."), said(250_000, "Done.")
NOTED = calling(50_000, "add_reminder", '{"content": "Step 3 is next."}')


@pytest.fixture(autouse=True)
def guarded(dialog: Dialog) -> None:
    """A window of 400,000 tokens in which compaction makes room; what is really sent is far from it."""
    guard(dialog, limit=WINDOW, window=WINDOW)


@pytest.fixture
def reminded(dialog: Dialog) -> Dialog:
    Agent.objects.update(when_full="remind")
    dialog.refresh_from_db()
    return dialog


def converse(dialog: Dialog, turns: int) -> None:
    for number in range(turns):
        ask_and_drive(dialog, f"Part {number}")


def asked(dialog: Dialog) -> list[str]:
    return list(RemediationPrompt.objects.filter(dialog=dialog).order_by("pk").values_list("level", flat=True))


@pytest.mark.parametrize(("when_full", "prompts"), [("remind", ["caution"]), ("compact", [])])
def test_an_agent_is_reminded_from_100_000_tokens_on_if_it_is_to_be_else_not_before_half_of_the_window(
    dialog: Dialog, play: Play, when_full: str, prompts: list[str]
) -> None:
    Agent.objects.update(when_full=when_full)
    play(EARLY, HEALTHY)

    converse(dialog, 1)

    assert asked(dialog) == prompts


def in_vain(play: Play, times: int) -> None:
    """Caution, entered anew each time; the agent answers the prompt in words."""
    play(*[CAUTION, HEALTHY] * times)


def test_who_answers_three_prompts_in_words_is_asked_no_more(dialog: Dialog, play: Play) -> None:
    in_vain(play, 5)

    converse(dialog, 5)

    assert asked(dialog) == ["caution"] * 3
    dialog.refresh_from_db()
    status = remediation_status(dialog, takes_notes=True)
    assert status is not None
    assert status.spared == "in_vain"


@pytest.mark.parametrize(("of", "values"), [(Agent, {"when_full": "remind"}), (LLM, {"compaction": "off"})])
def test_who_is_to_be_reminded_and_everybody_where_nothing_is_compacted_is_asked_all_the_same(
    dialog: Dialog, play: Play, of: type[Agent | LLM], values: dict[str, str]
) -> None:
    of.objects.update(**values)
    in_vain(play, 5)

    converse(dialog, 5)

    assert asked(dialog) == ["caution"] * 5


def test_to_be_reminded_means_the_prompts_and_the_countdown_whatever_tools_the_model_takes(
    reminded: Dialog, play: Play
) -> None:
    LLM.objects.update(tool_calling="off")
    play(*[said(390_000, "Noted.")] * 6, HEALTHY)

    converse(reminded, 1)

    assert asked(reminded) == ["critical"] * 5
    assert reminded.courses.count() == 2


def test_where_a_person_switched_our_tools_off_nobody_is_reminded_and_compaction_comes_as_for_others(
    reminded: Dialog, play: Play
) -> None:
    guard(reminded, limit=5_000, window=WINDOW)
    Agent.objects.update(when_full="remind")
    a_history(reminded, pairs=24)
    set_own_tools(dialog=reminded, own_tools="off")
    play(CAUTION, HEALTHY)

    converse(reminded, 1)

    assert asked(reminded) == []
    assert CompactionRun.objects.count() == 1


def test_one_reminder_in_three_keeps_the_agent_asked(dialog: Dialog, play: Play) -> None:
    play(*[CAUTION, HEALTHY] * 2, CAUTION, NOTED, HEALTHY, *[CAUTION, HEALTHY] * 2)

    converse(dialog, 5)

    assert asked(dialog) == ["caution"] * 5


def test_a_whole_countdown_in_vain_is_the_last(dialog: Dialog, play: Play) -> None:
    critical = said(390_000, "Noted.")
    play(*[critical] * 6, HEALTHY, critical, HEALTHY)

    converse(dialog, 2)

    assert asked(dialog) == ["critical"] * 5
    assert dialog.courses.count() == 2, "a countdown that has begun is never broken off"


@pytest.mark.parametrize(("when_full", "runs"), [("compact", 1), ("remind", 0)])
def test_above_the_threshold_the_history_is_compacted_unless_the_agent_is_reminded_first(
    dialog: Dialog, play: Play, when_full: str, runs: int
) -> None:
    Agent.objects.update(when_full=when_full)
    guard(dialog, limit=5_000, window=WINDOW)
    Agent.objects.update(when_full=when_full)
    a_history(dialog, pairs=24)
    play(HEALTHY)

    converse(dialog, 1)

    assert CompactionRun.objects.count() == runs


def test_what_does_not_fit_is_compacted_for_everybody(reminded: Dialog, play: Play) -> None:
    guard(reminded, limit=3_500, window=WINDOW)
    Agent.objects.update(when_full="remind")
    a_history(reminded, pairs=30)
    play(HEALTHY)

    converse(reminded, 1)

    assert CompactionRun.objects.get().status == "applied"


@pytest.mark.parametrize("when_full", ["compact", "remind"])
def test_the_goal_of_a_run_stands_in_every_request(dialog: Dialog, play: Play, when_full: str) -> None:
    Agent.objects.update(when_full=when_full)
    requests = play(CAUTION, NOTED, CAUTION, HEALTHY, calling(10, "goal_done", '{"summary": "Painted."}'), HEALTHY)
    start_run(dialog=dialog, goal="Paint the fence green.", max_generations=6)

    drive_until_idle(dialog)

    assert ["Paint the fence green." in str(request["messages"]) for request in requests()] == [True] * len(requests())


@pytest.mark.parametrize("compaction", ["automatic", "off"])
def test_an_agent_of_whom_nothing_is_asked_gets_no_prompt_and_no_course(
    dialog: Dialog, play: Play, compaction: str
) -> None:
    Agent.objects.update(when_full="no_prompts", compaction=compaction)
    dialog.refresh_from_db()
    play(CAUTION, *[said(390_000, "Done.")] * 8)

    converse(dialog, 8)

    assert asked(dialog) == []
    assert dialog.courses.count() == 1
    assert remediation_status(dialog, takes_notes=True).spared == "chosen"
