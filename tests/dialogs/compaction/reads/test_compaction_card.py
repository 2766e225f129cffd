"""What the card of a compaction says: the plan's words, bar, colours, badge, and when it is not there at all."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from dialogs.compaction.reads.compaction_card import Card, compaction_card
from dialogs.models import CompactionDisplay, Course, Dialog, ViewChange
from health.compaction.config import ContextConfig, RecoveryMode
from health.compaction.strategies import REGISTRY
from health.compaction.terms.configuration import dump
from health.compaction.terms.reasons import Reason, Why, columns_of
from health.models import CompactionRun, ContextSettings
from tests.builders import a_course
from tests.dialogs.compaction_runs import a_run, a_step, an_applied_run


def card_of(dialog: Dialog) -> Card:
    found = compaction_card(dialog)
    assert found is not None
    return found


def long_ago(run: CompactionRun) -> None:
    then = timezone.now() - timedelta(minutes=1)
    CompactionRun.objects.filter(pk=run.pk).update(finished_at=then)
    ViewChange.objects.update(changed_at=then)


TRUNCATED = {"status": "applied", "recovered": "truncate"}
# A fresh start for whose handover there was no room.
BARE = {"status": "applied", "recovered": "fresh_start"}
# The plan's table, word for word.
DEFAULTS = [
    ("detection", "sync", "Checking context length…"),
    ("prioritize_recent", "star", "Prioritizing P1 units & recent messages…"),
    ("content_type_chunking", "code", "Chunking code & plan references…"),
    ("discard_low_rel", "clear-all", "Removing low-relevance units…"),
    ("hybrid", "layers", "Applying hybrid compression…"),
    ("recovery", "refresh", "Overflow detected – starting fresh conversation"),
    ("handover", "sync-complete", "Resumed from summary. Continuing task…"),
]


@pytest.mark.parametrize(("phase", "icon", "message"), DEFAULTS)
def test_a_phase_has_the_seeds_icon_and_message(dialog: Dialog, phase: str, icon: str, message: str) -> None:
    a_run(dialog, phase=phase)

    card = card_of(dialog)

    assert (card.phase, card.icon, card.message) == (phase, icon, message)


def test_every_other_strategy_and_a_recovery_that_drops_the_oldest_have_words_of_their_own(dialog: Dialog) -> None:
    values = dump(ContextConfig(recovery_mode=RecoveryMode.TRUNCATE))
    ContextSettings.objects.update_or_create(pk=1, defaults={"values": values})
    said = {}
    for phase in {*REGISTRY, "fresh_start", "recovery", "detection"}:
        CompactionRun.objects.all().delete()
        a_run(dialog, phase=phase)
        said[phase] = card_of(dialog).message

    assert said.pop("recovery") == "Overflow detected – dropping the oldest messages"
    checking = said.pop("detection")
    assert all(words.endswith("…") and words != checking for words in said.values())


@pytest.mark.parametrize(
    ("before", "after", "words"), [(2100, 300, "2.1k → 300"), (900, 300, "900 → 300"), (12_000, 1500, "12k → 1.5k")]
)
def test_a_summary_says_what_it_is_about_to_make(dialog: Dialog, before: int, after: int, words: str) -> None:
    a_run(dialog, phase="summarize_old", steps=[a_step("summarize_old", before, after, is_running=True)])

    card = card_of(dialog)

    assert (card.icon, card.message) == ("compress", f"Summarizing old context… (est. {words} tokens)")
    assert card.pulses


def test_a_summary_of_which_nothing_is_known_claims_nothing(dialog: Dialog) -> None:
    a_run(dialog, phase="summarize_old", steps=[a_step("trim_payloads", 4500, 4000)])

    assert card_of(dialog).message == "Summarizing old context…"


@pytest.mark.parametrize(
    ("fields", "phase", "message"),
    [
        ({"status": "applied"}, "success", "Context reduced to 3,420 / 5,000 tokens"),
        (TRUNCATED, "truncated", "Oldest messages dropped: 3,420 / 5,000 tokens"),
        (BARE, "bare", "Only what must stay is left: 3,420 / 5,000 tokens"),
        ({"status": "draft"}, "draft", "Ready for your review: 3,420 / 5,000 tokens"),
        ({"status": "skipped"}, "skipped", "Nothing was compacted"),
        ({"status": "failed"}, "failed", "Compaction failed. Nothing was changed."),
        ({"status": "cancelled"}, "cancelled", "Compaction cancelled. Nothing was changed."),
        ({"status": "undone"}, "undone", "Compaction undone. The model sees the earlier context again."),
        ({"status": "running", "cancel_requested": True}, "cancelling", "Cancelling…"),
    ],
)  # fmt: skip
def test_every_end_says_what_it_was(dialog: Dialog, fields: dict[str, Any], phase: str, message: str) -> None:
    a_run(dialog, estimated_after=3420, **fields)

    card = card_of(dialog)

    assert (card.phase, card.message) == (phase, message)


@pytest.mark.parametrize("fields", [{"recovered": "fresh_start"}, {"trigger": "reset"}])
def test_a_fresh_start_with_a_handover_says_that_it_goes_on(dialog: Dialog, fields: dict[str, Any]) -> None:
    written = {"content": "Resuming from overflow: the pump is repaired.", "kind": "handover", "covers": [1]}
    an_applied_run(dialog, view=[written], **fields)

    card = card_of(dialog)

    assert (card.phase, card.message) == ("handover", "Resumed from summary. Continuing task…")
    assert (card.details.preview, card.details.is_handover) == (written["content"], True)


@pytest.mark.parametrize(
    ("phase", "now", "progress"),
    [
        ("hybrid", 4500, 90),
        ("hybrid", 6000, 100),
        ("hybrid", 2525, 51),  # 50.5 rounds up, as in JavaScript
        ("recovery", 4500, -1),
        ("handover", 1000, 20),
        ("detection", None, -1),
    ],
)
def test_the_bar_is_the_share_of_the_limit(dialog: Dialog, phase: str, now: int | None, progress: int) -> None:
    a_run(dialog, phase=phase, tokens_now=now)

    assert card_of(dialog).progress == progress


@pytest.mark.parametrize(
    ("fields", "tone"),
    [
        ({"phase": "hybrid", "tokens_now": 3000}, "normal"),
        ({"phase": "hybrid", "tokens_now": 3000, "priority": 2}, "normal"),
        ({"phase": "hybrid", "tokens_now": 3000, "priority": 1}, "p1"),
        ({"phase": "hybrid", "tokens_now": 4001, "priority": 1}, "warning"),
        ({"phase": "hybrid", "tokens_now": 4000, "priority": 1}, "p1"),  # at the threshold is not above it
        ({"phase": "recovery", "tokens_now": 4500, "priority": 1}, "recovery"),
        ({"phase": "handover", "tokens_now": 1000, "priority": 1}, "recovery"),
        ({"phase": "detection", "priority": 1}, "warning"),  # the guard began it: it is over the threshold
        ({"status": "failed", "estimated_after": 3000}, "recovery"),
        ({"estimated_after": 3000, **TRUNCATED}, "warning"),
    ],
)
def test_recovery_and_failure_go_before_warning_before_p1_before_normal(
    dialog: Dialog, fields: dict[str, Any], tone: str
) -> None:
    a_run(dialog, **fields)

    assert card_of(dialog).tone == tone


@pytest.mark.parametrize(
    ("priority", "area", "badge"),
    [
        (1, "", "P1: To Do List"),
        (2, "", "P2: Calendar"),
        (3, "", "P3"),
        (1, "Contract", "P1: Contract"),
        (None, "Contract", ""),
        (1, "pinned", "P1: pinned"),
    ],
)
def test_the_badge_names_the_highest_priority_and_its_area(
    dialog: Dialog, priority: int | None, area: str, badge: str
) -> None:
    a_run(dialog, priority=priority, priority_area=area)

    assert card_of(dialog).badge == badge


def test_the_details_tell_what_it_took_and_what_it_left(dialog: Dialog) -> None:
    steps = [
        a_step("detection", 4500, 4500),
        a_step("trim_payloads", 4500, 4500, note="nothing bulky"),
        a_step("summarize_old", 4500, 3420, ms=800.0),
        a_step("success", 3420, 3420),
    ]
    losses = [
        {"text": "BK-77310", "kind": "identifier", "message": 1, "kept": True},
        {"text": "/srv/old", "kind": "path", "message": 1, "kept": False},
    ]
    coverage = [{"message": 1, "extent": extent, "read": 1, "total": 2} for extent in ("in full", "in full", "in part")]
    view = [{"content": "The pump was repaired.", "kind": "summary", "covers": [1]}]
    an_applied_run(dialog, steps=steps, losses=losses, coverage=coverage, view=view, removed=[1, 2, 3])

    details = card_of(dialog).details

    assert [step.label for step in details.steps] == ["Trim payloads", "Summarize old"]
    assert [(step.label, step.ms) for step in details.used] == [("Summarize old", 800.0)]
    assert (details.discarded, details.preview, details.is_handover) == (3, "The pump was repaired.", False)
    assert (details.in_full, details.in_part, details.not_at_all) == (2, 1, 0)
    assert (details.kept, details.facts, details.losses) == (1, 2, ("/srv/old",))


def test_a_dialog_that_was_never_compacted_and_a_course_that_was_left_have_no_card(dialog: Dialog) -> None:
    assert compaction_card(dialog) is None
    a_run(dialog, status="failed", finished_at=timezone.now())
    assert compaction_card(dialog) is not None

    a_course(dialog)

    assert compaction_card(dialog) is None


def test_who_wants_no_card_or_p1_not_highlighted_gets_none_or_a_plain_one(dialog: Dialog) -> None:
    a_run(dialog, priority=1, tokens_now=1000)

    display = CompactionDisplay.objects.create(user=dialog.owner, highlight_p1=False)
    assert card_of(dialog).tone == "normal"

    display.show = False
    display.save()
    assert compaction_card(dialog) is None


@pytest.mark.parametrize("fields", [{"status": "failed"}, {"status": "skipped"}, TRUNCATED, BARE])
def test_what_was_no_success_stays(dialog: Dialog, fields: dict[str, Any]) -> None:
    long_ago(a_run(dialog, **fields))

    assert card_of(dialog).hides_after is None


@pytest.mark.parametrize("status", ["failed", "skipped", "cancelled"])
def test_what_ended_a_day_ago_is_no_news(dialog: Dialog, status: str) -> None:
    run = a_run(dialog, status=status, finished_at=timezone.now() - timedelta(hours=23))
    assert compaction_card(dialog) is not None

    CompactionRun.objects.filter(pk=run.pk).update(finished_at=timezone.now() - timedelta(hours=25))

    assert compaction_card(dialog) is None


def test_a_draft_that_was_applied_later_counts_from_then(dialog: Dialog) -> None:
    run = an_applied_run(dialog)

    CompactionRun.objects.filter(pk=run.pk).update(finished_at=timezone.now() - timedelta(hours=1))

    assert card_of(dialog).phase == "success"


def test_a_success_goes_after_the_seconds_that_the_person_chose_and_only_a_view_that_holds_can_be_undone(
    dialog: Dialog,
) -> None:
    run = an_applied_run(dialog)
    assert (card_of(dialog).hides_after, card_of(dialog).may_undo) == (3, True)

    Course.objects.filter(pk=run.course_id).update(head_run=None)
    assert not card_of(dialog).may_undo

    long_ago(run)
    assert compaction_card(dialog) is None


@pytest.mark.parametrize(
    ("fields", "may"),
    [({}, True), ({"status": "queued"}, True), ({"cancel_requested": True}, False), ({"status": "skipped"}, False)],
)
def test_only_what_runs_can_be_cancelled(dialog: Dialog, fields: dict[str, Any], may: bool) -> None:
    a_run(dialog, **fields)

    assert card_of(dialog).may_cancel is may


# --- Runs that nobody needed -----------------------------------------------------------------------------------------


def test_what_cannot_be_freed_is_one_line_with_what_to_do_below(dialog: Dialog) -> None:
    share = Reason(Why.SHARE, {"why": Reason(Why.PINNED), "tokens": 4000})
    needed = {"needed": 4200, "limit": 5000, "shares": (share,), "ways": (Reason(Why.UNPIN),)}
    stuck = Reason(Why.STUCK, {"why": Reason(Why.CANNOT_FREE_MORE, needed)})
    a_run(dialog, status="skipped", estimated_before=4500, estimated_after=4500, **columns_of(stuck))

    card = card_of(dialog)

    assert (card.message, card.tone) == ("Compaction cannot free more", "normal")
    assert "The largest: pinned ≈4,000 tokens. To go on, unpin messages" in card.reason
