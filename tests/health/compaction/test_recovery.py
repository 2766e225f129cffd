"""Recovery: what a fresh start keeps and tells, what truncation drops, and the last resort for what is too long."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from health.compaction.compact import compact
from health.compaction.config import ContextConfig, RecoveryMode
from health.compaction.laws.floor import floor_of, is_handover, standing
from health.compaction.laws.invariants import broken
from health.compaction.laws.weave import without_ledger
from health.compaction.reading.ledger import is_ledger
from health.compaction.recovery import bare, fresh_start
from health.compaction.round_digest import HEAD_NOTE
from health.compaction.runner import run
from health.compaction.terms.outcome import Code, CompactionOutcome, Extent, Status
from health.compaction.terms.ports import Answer, Kit, Need, Summarise, Summarised
from health.compaction.terms.units import ContextState, Kind, Priority, Role, Unit, total
from health.compaction.trimming.clamp import clamped, evened
from tests.health.compaction.builders import (
    KIT,
    a_round,
    a_state,
    a_talk,
    a_unit,
    ids,
    p1,
    pinned,
    play,
    texts,
)

MARKS = re.compile(r"\n?\[… [^\]]+ …\]\n?|\[…\]")
COUNTS = re.compile(r"([\d,]+) characters archived")
TRUNCATE = ContextConfig(recovery_mode=RecoveryMode.TRUNCATE)


def recovered(state: ContextState, kit: Kit = KIT, answer: object = None) -> CompactionOutcome:
    """The outcome of a chain that can do nothing."""
    running = compact(state, kit, chain=["nothing"], strategies={})
    return run(running, answer=answer) if callable(answer) else run(running)


def only_handover(outcome: CompactionOutcome) -> Unit:
    (unit,) = [unit for unit in outcome.state.units if is_handover(unit)]
    return unit


# Fresh start.


@pytest.mark.parametrize(
    ("task", "end"),
    [
        ("Write the report", ". Continue task Write the report."),
        ("", ". Continue the task."),
        ("words " * 500, "…."),
    ],
)
def test_a_fresh_start_leaves_one_handover_in_the_seeds_frame(task: str, end: str) -> None:
    outcome = recovered(a_state(*a_talk(80, words=20), limit=1000, task=task))

    handover = only_handover(outcome)
    assert handover.content.startswith("Resuming from overflow: ")
    assert handover.content.endswith(end)
    assert (handover.kind, handover.role, handover.priority) == (Kind.SUMMARY, Role.USER, Priority.P1)


def test_a_fresh_start_does_not_end_above_its_own_trigger() -> None:
    pins = [pinned(a_unit(f"this stays {'word ' * 97}", id=f"pin{at}")) for at in range(5)]
    state = a_state(*pins, *a_talk(80, words=20), limit=1000)

    outcome = recovered(state)

    assert only_handover(outcome)
    assert outcome.estimated_tokens_after <= 800


def test_a_reset_of_a_short_chat_leaves_what_must_stay() -> None:
    state = a_state(a_unit("hello", id="hello"), a_unit("I am confused.", role=Role.ASSISTANT), limit=1000)
    at_any_size = replace(state.config, warning_threshold=0, goal=0, min_gain=0)

    outcome = run(
        compact(replace(state, config=at_any_size), KIT, chain=["fresh_start"], strategies={"fresh_start": fresh_start})
    )

    assert (outcome.status, ids(outcome.state)) == (Status.APPLIED, ["hello"])


def test_a_handover_is_at_most_500_tokens_and_counted_as_it_is() -> None:
    outcome = recovered(a_state(*a_talk(300, words=50), limit=5000))

    handover = only_handover(outcome)
    assert handover.estimated_tokens == KIT.tokens(handover.content)
    assert 100 < handover.estimated_tokens <= 500


def test_a_handover_says_what_was_dropped_and_where_it_is_and_is_labelled_as_history() -> None:
    outcome = recovered(a_state(*a_talk(80, words=20), limit=1000))

    handover = only_handover(outcome)
    count = len(handover.source_ids)
    assert f"{count} earlier messages ({20 * count:,} tokens) are left out; all of them are in the archive" in (
        handover.content
    )
    assert "history, not instructions" in handover.content
    assert outcome.removed_ids == handover.source_ids
    assert {receipt.extent for receipt in outcome.coverage} == {Extent.IN_FULL}


def test_a_fresh_start_reports_that_it_recovered_step_by_step() -> None:
    outcome = recovered(a_state(*a_talk(80, words=20), limit=1000))

    assert [(step.phase, step.changed) for step in outcome.steps] == [
        ("detection", False),
        ("recovery", False),
        ("handover", True),
        ("success", True),
    ]
    assert (outcome.status, outcome.recovered) == (Status.APPLIED, RecoveryMode.FRESH_START)
    assert outcome.breaking is not None
    assert outcome.breaking.used_recovery


def test_a_fresh_start_keeps_all_that_is_protected() -> None:
    talk = a_talk(80, words=20)
    first = replace(p1(a_unit("this is most important")), id="first-priority")
    pin = replace(pinned(a_unit("this is pinned")), id="pin")
    system = a_unit("be brief", id="system", role=Role.SYSTEM)
    state = a_state(system, *talk[:20], first, *talk[20:40], pin, *talk[40:], *a_round("look", "found"), limit=1000)

    outcome = recovered(state)

    kept = [unit.id for unit in outcome.state.units if not is_handover(unit) and not is_ledger(unit)]
    assert kept == ["system", "t0", "first-priority", "pin", "t78", *ids(state)[-2:]]
    assert broken(state.units, outcome.state.units, may_change=outcome.forced_ids) == []


def test_the_handover_stands_after_everything_older_than_its_last_message() -> None:
    outcome = recovered(a_state(*a_talk(80, words=20), a_unit("and now?", id="now"), limit=1000))

    first, *_, handover, last = outcome.state.units
    assert (first.id, is_handover(handover), last.id) == ("t0", True, "now")
    assert handover.timestamp < last.timestamp


def test_what_the_user_ruled_is_carried_through_a_fresh_start() -> None:
    rule = a_unit("You must never deploy on a Friday.")

    outcome = recovered(a_state(*a_talk(30, words=20), rule, *a_talk(50, words=20, start=30), limit=1000))

    assert rule.content in texts(outcome.state)


def test_a_second_fresh_start_retells_the_first_handover_instead_of_piling_up() -> None:
    outcome = recovered(a_state(*a_talk(80, words=20), limit=1000))
    grown = outcome.state.with_units(KIT.counted((*outcome.state.units, *a_talk(80, words=20, start=100))))

    again = recovered(grown)

    assert only_handover(again).id != only_handover(outcome).id
    assert set(only_handover(outcome).source_ids) < set(only_handover(again).source_ids)


def test_a_model_may_write_the_handover_and_garbage_of_it_is_not_used() -> None:
    def garbage(need: Need) -> Answer:
        return Summarised(text="", finished=True, read_chars={}) if isinstance(need, Summarise) else None

    outcome = recovered(a_state(*a_talk(80, words=20), limit=1000), replace(KIT, may_summarise=True), garbage)

    assert only_handover(outcome).content.startswith("Resuming from overflow: [Summary of 78 earlier messages")
    assert "was not used" in outcome.steps[2].note


def test_without_room_for_a_handover_only_what_must_stay_is_left() -> None:
    state = a_state(*a_talk(80, words=20), limit=50)

    outcome = recovered(state)

    assert ids(outcome.state) == ["t0", "t78"]
    assert outcome.steps[-2].note == "There is no room for a handover."


def test_a_fresh_start_that_fails_leaves_what_must_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_summary(*args: object, **fields: object) -> None:
        raise RuntimeError("out of order")

    monkeypatch.setattr("health.compaction.choosing.summaries.summary", no_summary)

    outcome = recovered(a_state(*a_talk(80, words=20), limit=1000))

    assert outcome.status is Status.APPLIED
    assert outcome.steps[2].note == "It failed: RuntimeError: out of order"
    assert [step.phase for step in outcome.steps] == ["detection", "recovery", "handover", "recovery", "success"]
    assert outcome.state.fits


# Truncation.


def test_truncation_drops_the_oldest_to_the_goal_and_leaves_a_placeholder() -> None:
    outcome = recovered(a_state(*a_talk(80, words=20), limit=1000, config=TRUNCATE))

    assert outcome.recovered is RecoveryMode.TRUNCATE
    assert [step.phase for step in outcome.steps] == ["detection", "recovery", "truncate", "success"]
    plain = without_ledger(outcome.state)
    assert 600 < total(plain.units) <= 700
    assert [unit.kind for unit in plain.units][:2] == [Kind.MESSAGE, Kind.PLACEHOLDER]
    assert outcome.state.units[-1].id == "t79"


def test_truncation_shortens_what_is_still_too_long() -> None:
    state = a_state(*a_talk(20), *a_round("look", "start " + "w " * 900 + "end", id="open"), limit=400, config=TRUNCATE)

    outcome = recovered(state)

    result = outcome.state.units[-1]
    assert result.content.startswith("start")
    assert result.content.endswith("end")
    assert "characters archived" in result.content
    assert outcome.state.fits


# What is too long alone.


@pytest.mark.parametrize("mode", [RecoveryMode.FRESH_START, RecoveryMode.TRUNCATE])
@pytest.mark.parametrize("sizes", [(3000,), (3000, 10), (2000, 2000, 2000)])
def test_open_results_larger_than_the_limit_are_shortened_until_all_fits(
    mode: RecoveryMode, sizes: Sequence[int]
) -> None:
    results = ["w " * size for size in sizes]
    state = a_state(*a_talk(6), *a_round("look", *results), limit=800, config=ContextConfig(recovery_mode=mode))

    outcome = recovered(state)

    assert outcome.state.fits
    assert broken(state.units, outcome.state.units, may_change=outcome.forced_ids) == []
    left = [KIT.tokens(unit.content) for unit in outcome.state.units if unit.role is Role.TOOL]
    assert all(tokens >= min(size, 100) for tokens, size in zip(left, sizes, strict=True))


def test_small_results_are_not_shortened_for_a_large_one() -> None:
    outcome = recovered(a_state(*a_talk(2), *a_round("look", "w " * 3000, "few words"), limit=800))

    assert outcome.state.units[-1].content == "few words"


def test_a_result_of_priority_one_gives_way_by_name() -> None:
    asked, answered = a_round("look", "w " * 3000)

    outcome = recovered(a_state(*a_talk(2), asked, p1(answered), limit=800))

    assert outcome.state.fits
    assert outcome.forced_ids == {answered.id}


def test_a_user_message_larger_than_the_limit_is_named() -> None:
    outcome = recovered(a_state(a_unit("w " * 3000, id="long"), limit=800))

    assert outcome.code is Code.BREAKER_FAILED
    assert "user's words (long) ≈3,000 tokens" in outcome.reason


def test_a_round_held_by_a_pinned_part_stays_whole_and_its_other_parts_may_be_shortened() -> None:
    asked, large, small = a_round("look", "w " * 3000, "few words")
    state = a_state(*a_talk(2), asked, large, pinned(small), *a_talk(4, start=2), limit=800)

    outcome = recovered(state)

    assert {asked.id, large.id, small.id} <= set(ids(outcome.state))
    assert outcome.state.fits


def test_without_anything_protected_the_last_cut_stays() -> None:
    units = [a_unit("w " * 300, id=f"a{number}", role=Role.ASSISTANT) for number in range(4)]

    outcome = recovered(a_state(*units, limit=200))

    assert ids(outcome.state) == ["a3"]
    assert outcome.state.fits


def test_nothing_more_can_go_where_only_what_must_stay_is_left() -> None:
    attempt = play(bare, a_state(a_unit("hello"), limit=1))

    assert (attempt.changed, attempt.note) == (False, "Nothing more can go.")


def test_nothing_stands_in_an_empty_context() -> None:
    assert standing([]) == ()
    assert floor_of(a_state(limit=9, overhead_tokens=3), KIT).tokens == 3


# Clamping.


@pytest.mark.parametrize("max_tokens", [15, 16, 40, 100, 499])
def test_a_clamped_text_keeps_within_its_tokens_and_says_what_it_left_out(max_tokens: int) -> None:
    text = " ".join(f"w{number}" for number in range(500))

    short = clamped(text, max_tokens=max_tokens, kit=KIT)

    assert KIT.tokens(short) <= max_tokens
    assert "characters archived" in short


@pytest.mark.parametrize(
    ("text", "most", "least"),
    [("a few words", 3, 3), ("many more words than that", 1, 0), ("x" * 100_000 + " w" * 3000, 200, 1)],
    ids=["it fits", "not even the note fits", "all tokens at one end"],
)
def test_a_text_that_fits_is_not_clamped_and_one_that_does_not_never_takes_more(
    text: str, most: int, least: int
) -> None:
    short = clamped(text, max_tokens=most, kit=KIT)

    assert least <= KIT.tokens(short) <= most
    assert short == text or least < most


@pytest.mark.parametrize("max_tokens", range(20, 60))
@pytest.mark.parametrize("how", [{}, {"note": HEAD_NOTE, "head_share": 1.0}], ids=["both ends", "head"])
def test_the_note_of_an_earlier_cut_is_never_cut_itself(max_tokens: int, how: dict[str, Any]) -> None:
    once = clamped(" ".join(f"word{number}" for number in range(400)), max_tokens=60, kit=KIT)

    twice = clamped(once, max_tokens=max_tokens, kit=KIT, **how)

    assert all(word.startswith("word") for word in MARKS.sub(" ", twice).split())


def test_a_second_note_counts_what_the_first_one_left_out() -> None:
    text = " ".join(f"word{number}" for number in range(400))

    twice = clamped(clamped(text, max_tokens=60, kit=KIT), max_tokens=30, kit=KIT)

    (said,) = COUNTS.findall(twice)
    assert len(MARKS.sub("", twice)) + int(said.replace(",", "")) == len(text)


def test_texts_are_shortened_to_the_limit_where_what_is_acceptable_is_out_of_reach() -> None:
    """Beside a pinned message no result can be as short as 80 % asks for, yet all fits."""
    results = ["w " * 300, "w " * 300]
    state = a_state(pinned(a_unit("p " * 650)), *a_round("look", *results), limit=900)

    outcome = recovered(state)

    assert outcome.state.fits
    assert [KIT.tokens(unit.content) <= 125 for unit in outcome.state.units if unit.role is Role.TOOL] == [True, True]


def test_results_with_images_are_shortened_to_the_least_where_their_images_take_the_room() -> None:
    asked, pictured, plain = a_round("look", "w " * 300, "w " * 300)
    state = a_state(a_unit("hello"), asked, replace(pictured, image_tokens=500), plain, limit=760)

    outcome = recovered(state)

    assert outcome.state.fits
    assert all(KIT.tokens(unit.content) <= 120 for unit in outcome.state.units if unit.role is Role.TOOL)


def test_nothing_is_shortened_where_nothing_is_too_much() -> None:
    units = KIT.counted([a_unit("few words"), a_unit("some more words")])

    assert evened(units, may={unit.id for unit in units}, excess=0, kit=KIT) == units
