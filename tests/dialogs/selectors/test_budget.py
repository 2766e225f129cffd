"""The budget: slices that add up, the limit with its terms, and what is said where nobody set one."""

from __future__ import annotations

import pytest

from dialogs.compacting.estimate import calibration_of
from dialogs.models import LLM, Dialog, Message
from dialogs.selectors.budget import Budget
from dialogs.selectors.budget import budget as budget_of
from dialogs.selectors.turns import dialog_to_drive
from dialogs.services.calibration import learn_from_usage
from dialogs.services.reminders import add_reminder, write_taskdoc
from health.limits import output_reserve
from tests.dialogs.compacting_builders import a_history, estimated, guard
from tests.dialogs.compaction_runs import an_applied_run


@pytest.fixture
def history(dialog: Dialog) -> list[Message]:
    return a_history(dialog, pairs=6)


def budget(dialog: Dialog) -> Budget:
    return budget_of(dialog_to_drive(dialog.pk))


def parts(found: Budget) -> dict[str, int]:
    return {slice_.name: slice_.tokens for slice_ in found.slices}


def test_the_slices_add_up_to_the_limit(dialog: Dialog, history: list[Message]) -> None:
    guard(dialog, limit=5000)
    write_taskdoc(dialog=dialog, content="Build the thing.")
    add_reminder(dialog=dialog, content="The key is under the mat.", author="user")

    found = budget(dialog)

    assert sum(parts(found).values()) == found.limit == 5000
    assert found.used == estimated(dialog)
    assert all(parts(found)[name] > 0 for name in ("instructions", "tools", "taskdoc", "reminders", "messages", "free"))
    assert found.slices[-1].start + found.slices[-1].width == pytest.approx(1)
    assert (found.is_guarded, found.over) == (True, 0)


def test_a_summary_is_told_apart_from_messages(dialog: Dialog, history: list[Message]) -> None:
    before = parts(budget(dialog))
    summary = {"content": "A summary of it.", "kind": "summary", "covers": [one.pk for one in history[:10]]}
    an_applied_run(dialog, view=[summary, *({"message": one.pk} for one in history[10:])])

    after = parts(budget(dialog))

    assert before["summaries"] == 0 < after["summaries"]
    assert after["messages"] < before["messages"]


def test_what_is_over_the_limit_is_said(dialog: Dialog) -> None:
    a_history(dialog, pairs=40)
    guard(dialog, limit=3500)

    found = budget(dialog)

    assert found.free == parts(found)["free"] == 0
    assert found.over == found.used - 3500 > 0


def test_the_limit_is_traced_term_by_term(dialog: Dialog) -> None:
    guard(dialog, limit=2000)

    found = budget(dialog)

    assert [(term.what, term.tokens) for term in found.trace] == [("agent", 2000), ("floor", 3500)]
    assert found.limit == 3500


def test_without_a_limit_the_window_is_shown(dialog: Dialog, llm: LLM) -> None:
    LLM.objects.update(context_length=8000)

    found = budget(dialog)

    assert (found.is_guarded, found.limit, found.trace) == (False, 8000, ())
    assert found.reserve == output_reserve(8000)
    assert sum(parts(found).values()) == 8000


def test_without_a_window_nothing_is_free(dialog: Dialog, llm: LLM, history: list[Message]) -> None:
    LLM.objects.update(context_length=None)

    found = budget(dialog)

    assert (found.limit, found.reserve, found.free, found.over) == (None, 0, 0, 0)
    assert sum(parts(found).values()) == found.used > 0


def test_what_was_learned_of_an_llm_is_told(dialog: Dialog, llm: LLM) -> None:
    assert budget(dialog).learned is None

    for _report in range(3):
        learn_from_usage(llm=llm, foretold=1000, reported=1200)

    learned = budget(dialog).learned
    assert learned is not None
    assert learned.generations == 3
    assert learned.factor == pytest.approx(calibration_of(llm).ratio)
    assert learned.error_percent > 0
