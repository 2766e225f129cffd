"""What a run tells before it ends: how much there was, whose priority it holds, what its summary will be."""

from __future__ import annotations

from typing import Any

import pytest

from dialogs.compaction import work
from dialogs.compaction.facts import badge, begins, expected
from dialogs.compaction.work import perform
from dialogs.compaction.writes import compaction
from dialogs.models import Dialog, MessageMark
from health.compaction.terms.units import ContextState, Kind, Role, Unit
from health.models import CompactionRun
from tests.dialogs.compacting_builders import a_history, guard
from tests.dialogs.compaction_runs import a_run


def a_unit(dom_id: str, **fields: Any) -> Unit:
    return Unit(**{"id": dom_id, "role": Role.USER, "content": "word", "estimated_tokens": 100} | fields)


def a_state(count: int, **fields: Any) -> ContextState:
    return ContextState(units=tuple(a_unit(str(number), **fields) for number in range(count)), limit=5000)


def test_the_old_part_is_expected_to_become_a_summary() -> None:
    (step,) = expected("summarize_old", a_state(10))

    # Six of ten are old; the first request stays.
    assert (step["phase"], step["is_running"]) == ("summarize_old", True)
    assert (step["estimated_before"], step["estimated_after"]) == (500, 300)


def test_a_summary_is_not_expected_to_be_longer_than_what_it_is_of() -> None:
    (step,) = expected("summarize_old", a_state(10, estimated_tokens=20))

    assert (step["estimated_before"], step["estimated_after"]) == (100, 100)


def test_nothing_is_expected_of_other_strategies() -> None:
    assert expected("discard_low_rel", a_state(10)) == []


@pytest.mark.parametrize(("step", "column"), [("recovery", {"phase": "recovery"}), ("summarize_old", {})])
def test_a_recovery_begins_with_its_step_a_strategy_says_so_itself(step: str, column: dict[str, str]) -> None:
    assert begins(step) == column


def test_the_badge_is_the_highest_priority_that_a_person_gave(dialog: Dialog) -> None:
    first, second, third, fourth = a_history(dialog, pairs=2)
    MessageMark.objects.create(message=first, priority=2, area="Calendar")
    MessageMark.objects.create(message=second, priority=1, area="Contract")

    whole = badge(dialog.pk, [a_unit(str(one.pk)) for one in (first, second, third)])
    rest = badge(dialog.pk, [a_unit(str(one.pk)) for one in (first, third, fourth)])

    assert whole == {"priority": 1, "priority_area": "Contract"}
    assert rest == {"priority": 2, "priority_area": "Calendar"}
    assert badge(dialog.pk, [a_unit(str(fourth.pk))]) == {"priority": None, "priority_area": ""}


def test_a_summary_has_the_priority_of_what_it_tells_of_a_placeholder_has_none(dialog: Dialog) -> None:
    first, second = a_history(dialog, pairs=1)
    MessageMark.objects.create(message=first, pinned=True)
    sources = (str(first.pk), str(second.pk))

    summary = badge(dialog.pk, [a_unit("summary-1", kind=Kind.SUMMARY, source_ids=sources)])
    gap = badge(dialog.pk, [a_unit("gap-1", kind=Kind.PLACEHOLDER, source_ids=sources)])

    assert (summary["priority"], gap["priority"]) == (1, None)


def test_a_mere_pin_is_no_task_of_anybodys(dialog: Dialog) -> None:
    first, second = a_history(dialog, pairs=1)
    MessageMark.objects.create(message=first, pinned=True)

    assert badge(dialog.pk, [a_unit(str(first.pk))]) == {"priority": 1, "priority_area": "pinned"}

    MessageMark.objects.create(message=second, priority=1, area="")
    assert badge(dialog.pk, [a_unit(str(one.pk)) for one in (first, second)]) == {"priority": 1, "priority_area": ""}


@pytest.mark.django_db(transaction=True)
def test_a_run_reports_each_strategy_as_it_begins(dialog: Dialog, monkeypatch: pytest.MonkeyPatch) -> None:
    guard(dialog)
    said = a_history(dialog, pairs=20)
    MessageMark.objects.create(message=said[-1], priority=2)
    dialog.refresh_from_db()
    run = a_run(dialog, status="queued", tokens_now=None, limit_tokens=3500, chain=["summarize_old"])
    told: list[dict[str, Any]] = []
    report = compaction.report
    monkeypatch.setattr(
        work.compaction, "report", lambda claim, **changes: told.append(changes) or report(claim, **changes)
    )

    perform(run.pk, embedder="static")

    assert told[0]["priority"] == 2
    assert told[0]["tokens_now"] == told[0]["estimated_before"] > 3500
    begun = next(changes for changes in told if changes.get("phase") == "summarize_old")
    assert begun["steps"][-1]["is_running"]
    kept = CompactionRun.objects.get(pk=run.pk)
    assert not any(step.get("is_running") for step in kept.steps)
