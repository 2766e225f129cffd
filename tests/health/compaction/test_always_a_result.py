"""While instructions, tools and the newest typed message leave a little room, there is a result that fits."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from health.compaction.compact import compact
from health.compaction.config import ContextConfig, RecoveryMode
from health.compaction.laws.floor import LEAST_ROOM, OPENING, is_handover, least_of, must_stay
from health.compaction.laws.invariants import broken, broken_request, is_marked, never_shortened, requests, waits
from health.compaction.laws.weave import without_ledger
from health.compaction.reading.digest import HEADER, is_digest
from health.compaction.runner import run
from health.compaction.shortening import FIRST_REQUEST_SHARE, STEPS, Reduction, make_room, taken
from health.compaction.strategies import REGISTRY
from health.compaction.terms.outcome import Code, CompactionOutcome, Status
from health.compaction.terms.ports import Kit
from health.compaction.terms.reasons import Reason, Why
from health.compaction.terms.units import ContextState, Kind, Priority, Role, Unit, total
from health.services import compact_messages
from tests.health.compaction import histories
from tests.health.compaction.builders import KIT, a_round, a_state, a_talk, a_unit, ids, p1, pinned, play

FULL = ContextConfig(warning_threshold=1.0, goal=1.0, accept=1.0, min_gain=0.0)
SYSTEM = a_unit("be brief and kind", id="system", role=Role.SYSTEM)
LAST = a_unit("and now go on please", id="last")


def words(count: int, name: str = "w") -> str:
    return " ".join(f"{name}{number}" for number in range(count))


def compacted(*units: Unit, limit: int, config: ContextConfig = FULL) -> CompactionOutcome:
    """The outcome, once it was seen that it fits, is lawful, and kept what is never shortened."""
    state = a_state(*units, limit=limit, config=config)
    outcome = run(compact(state, KIT))
    check(state, outcome)
    return outcome


def check(state: ContextState, outcome: CompactionOutcome) -> None:
    assert outcome.status is not Status.FAILED, outcome.reason
    assert outcome.state.fits
    before = [unit for unit in without_ledger(state).units if not (outcome.recovered and is_handover(unit))]
    assert broken(before, outcome.state.units, may_change=outcome.forced_ids) == []
    never = untouched(state.units)
    now = {unit.id: unit for unit in outcome.state.units}
    assert [now.get(unit.id) for unit in state.units if unit.id in never] == [u for u in state.units if u.id in never]
    named = {why.why for why in outcome.warnings if isinstance(why, Reason)}
    assert bool(outcome.forced_ids) == bool(named & {*(step.why for step in STEPS), Why.NO_LONGER_IN_FORCE})


def untouched(units: Sequence[Unit]) -> frozenset[str]:
    """Instructions, and what a person said last, as long as nobody took it up."""
    worked_on = () if waits(units) else requests(units)[-1:]
    return never_shortened(units) - {unit.id for unit in worked_on if not is_marked(unit)}


def told(outcome: CompactionOutcome) -> list[Why]:
    return [why.why for why in outcome.warnings if isinstance(why, Reason)]


def content(outcome: CompactionOutcome, name: str) -> str:
    return next((unit.content for unit in outcome.state.units if unit.id == name), "")


# Each step, in its order.

FIRST = a_unit(words(900, "first"), id="first")
LOOK = a_round("look", words(80, "found"), id="open")


@pytest.mark.parametrize(
    ("units", "limit", "steps"),
    [
        ((SYSTEM, FIRST, LAST), 600, [Why.FIRST_REQUEST_SHORTENED]),
        ((SYSTEM, FIRST, LAST, *a_round(words(600), "found")), 400,
         [Why.FIRST_REQUEST_SHORTENED, Why.TEXTS_SHORTENED]),
        ((SYSTEM, FIRST, LAST, *a_round(words(600), words(600))), 500,
         [Why.FIRST_REQUEST_SHORTENED, Why.TEXTS_SHORTENED, Why.RESULTS_SHORTENED]),
        ((SYSTEM, FIRST, LAST, *a_round(words(600), words(600))), 300,
         [Why.FIRST_REQUEST_SHORTENED, Why.TEXTS_SHORTENED, Why.RESULTS_SHORTENED, Why.ROUND_DIGESTED]),
        ((SYSTEM, FIRST, LAST, *a_round(words(600), words(600))), 100,
         [Why.FIRST_REQUEST_SHORTENED, Why.TEXTS_SHORTENED, Why.RESULTS_SHORTENED, Why.ROUND_DIGESTED, Why.HEADS_LEFT]),
        ((SYSTEM, replace(FIRST, image_tokens=900), LAST), 100,
         [Why.FIRST_REQUEST_SHORTENED, Why.HEADS_LEFT, Why.GONE_ENTIRELY]),
        ((SYSTEM, *(pinned(a_unit(words(300))) for _ in range(2)), LAST), 400, [Why.MARKED_SHORTENED]),
        ((SYSTEM, *(pinned(a_unit(words(300))) for _ in range(4)), LAST), 400,
         [Why.MARKED_SHORTENED, Why.MARKED_LEFT_OUT]),
    ],
)  # fmt: skip
def test_each_step_comes_only_where_those_before_it_did_not_suffice(
    units: Sequence[Unit], limit: int, steps: list[Why]
) -> None:
    assert list(dict.fromkeys(told(compacted(*units, limit=limit)))) == steps


def test_each_step_is_one_of_the_run_with_its_sizes_and_names() -> None:
    outcome = compacted(SYSTEM, FIRST, LAST, limit=600)

    (step,) = [step for step in outcome.steps if step.phase == "shortening"]
    assert (step.changed, step.estimated_before, step.why) == (True, 909, outcome.warnings[0])
    assert "The first request (first) was shortened from ≈900 to ≈" in step.note
    assert outcome.forced_ids == {"first"}


def test_a_first_request_of_five_thousand_tokens_leaves_room_under_four_thousand() -> None:
    outcome = compacted(SYSTEM, a_unit(words(5000), id="first"), *a_talk(60, words=60), LAST, limit=4096)

    room = 4096 - 4 - 5
    assert 0.4 * room < KIT.tokens(content(outcome, "first")) <= FIRST_REQUEST_SHARE * room
    assert content(outcome, "first").startswith("w0 w1 ")
    assert content(outcome, "first").endswith(" w4999")
    assert "characters archived" in content(outcome, "first")
    assert outcome.estimated_tokens_after > 3000


def test_a_first_request_over_its_share_gives_way_though_all_that_must_stay_fits() -> None:
    outcome = compacted(SYSTEM, a_unit(words(700), id="first"), *a_talk(60, words=60), LAST, limit=1000)

    assert told(outcome) == [Why.FIRST_REQUEST_SHORTENED]
    assert total(outcome.state.units) > 600


@pytest.mark.parametrize("mark", [pinned, p1])
def test_a_first_request_that_is_marked_keeps_more_than_its_share(mark: Callable[[Unit], Unit]) -> None:
    outcome = compacted(SYSTEM, mark(a_unit(words(700), id="first")), *a_talk(60, words=60), LAST, limit=1000)

    assert told(outcome) == []
    assert content(outcome, "first") == words(700)


def test_the_newest_message_is_never_shortened_though_it_is_the_first_too() -> None:
    outcome = compacted(SYSTEM, a_unit(words(700), id="only"), *a_round("look", words(900)), limit=1000)

    assert content(outcome, "only") == words(700)


def test_a_first_request_keeps_whole_lines() -> None:
    lines = [f"{number}. take this {words(10)}" for number in range(200)]
    outcome = compacted(SYSTEM, a_unit("\n".join(lines), id="first"), LAST, limit=1000)

    kept = [line for line in content(outcome, "first").splitlines() if line and not line.startswith("[")]
    assert len(kept) > 25
    assert set(kept) <= set(lines)


def test_a_result_that_fits_is_byte_equal_however_large_it_is() -> None:
    asked, answered = a_round("look", words(700, "found"))
    outcome = compacted(SYSTEM, a_unit("hello"), *a_talk(60, words=60), LAST, asked, answered, limit=1000)

    assert content(outcome, answered.id) == answered.content
    assert told(outcome) == []


def test_a_newest_result_larger_than_the_window_is_shortened_and_says_so() -> None:
    outcome = compacted(SYSTEM, a_unit("hello"), LAST, *a_round("look", words(9000), "small", id="open"), limit=1000)

    assert told(outcome) == [Why.RESULTS_SHORTENED]
    assert "exceeds the model's context limit" in content(outcome, "open-t0")
    assert content(outcome, "open-t1") == "small"
    assert outcome.forced_ids == {"open-t0"}


def test_a_shortened_result_that_was_json_is_json() -> None:
    rows = json.dumps([{"id": number, "note": words(5)} for number in range(900)])
    outcome = compacted(SYSTEM, a_unit("hello"), LAST, *a_round("look", rows, id="open"), limit=600)

    assert json.loads(content(outcome, "open-t0"))


def test_a_tree_of_elements_whose_short_form_fits_is_not_cut_further_for_the_goal() -> None:
    elements = [{"role": "button", "title": f"Button {at}"} for at in range(90)]
    short = json.dumps({"elements": elements})
    asked, answered = a_round("look", json.dumps({"elements": [one | {"description": words(30)} for one in elements]}))
    asked = replace(asked, calls=(replace(asked.calls[0], name="mac__elementsJson"),))

    outcome = compacted(LAST, asked, answered, limit=round(KIT.tokens(short) / 0.82), config=ContextConfig())

    assert content(outcome, answered.id) == short


def customers(count: int) -> str:
    return json.dumps([{"id": number, "name": f"customer {number}", "city": "Rome"} for number in range(count)])


@pytest.mark.parametrize("share", [0.8, 0.5, 0.2])
def test_a_newest_table_that_does_not_fit_keeps_as_many_records_as_fit(share: float) -> None:
    table = customers(300)
    limit = int(KIT.tokens(table) * share)

    outcome = compacted(LAST, *a_round("look", table), limit=limit)

    (result,) = [unit for unit in outcome.state.units if unit.role is Role.TOOL]
    assert 0.85 * limit < outcome.estimated_tokens_after <= limit
    assert 0.8 * share * 300 < len(json.loads(result.content)["result"]) < share * 300


def test_of_two_tables_only_one_is_shortened_where_that_suffices_and_no_more_than_it_must() -> None:
    tables = customers(200), customers(100)
    limit = int(sum(map(KIT.tokens, tables)) * 0.75)

    outcome = compacted(LAST, *a_round("look", *tables), limit=limit)

    first, second = (unit.content for unit in outcome.state.units if unit.role is Role.TOOL)
    assert second == tables[1]
    assert 80 < len(json.loads(first)) < 150
    assert 0.85 * limit < outcome.estimated_tokens_after <= limit


def a_calling_round(count: int) -> tuple[Unit, ...]:
    """Its calls alone are five hundred tokens each."""
    asked, *answered = a_round("I write the files", *["ok"] * count, id="open")
    calls = tuple(replace(call, arguments=words(500)) for call in asked.calls)
    return (replace(asked, calls=calls, attached=" ".join(call.arguments for call in calls)), *answered)


def test_a_round_whose_calls_alone_do_not_fit_becomes_a_digest() -> None:
    outcome = compacted(SYSTEM, a_unit("hello", id="first"), LAST, *a_calling_round(6), limit=1000)

    assert told(outcome) == [Why.ROUND_DIGESTED]
    assert outcome.forced_ids == {"open-a", *(f"open-t{number}" for number in range(6))}
    digest = outcome.state.units[-1]
    assert is_digest(digest)
    assert (digest.role, digest.kind, digest.calls) == (Role.USER, Kind.SUMMARY, ())
    assert "assistant:\n  I write the files" in digest.content
    assert "> look" in digest.content
    assert "  ok" in digest.content
    assert outcome.estimated_tokens_after > 800


def test_a_digest_of_a_round_says_whole_lines_and_never_a_part_of_one() -> None:
    lines = [f"row {number} of the table holds the value V-{number}0417" for number in range(40)]
    asked, answered = a_round("I look at the table.", "\n".join(lines), id="open")
    called = replace(asked, calls=tuple(replace(call, arguments=words(300)) for call in asked.calls))
    outcome = compacted(SYSTEM, LAST, replace(called, attached=words(300)), answered, limit=90)

    digest = outcome.state.units[-1]
    said = [line.strip() for line in digest.content.split("\n")]
    told = [line for line in said if line.startswith("row ")]
    assert is_digest(digest)
    assert told
    assert [line.removesuffix(" […]") for line in told] == lines[: len(told)]


def test_a_digest_spends_nothing_on_what_it_cannot_tell() -> None:
    """No speaker of whose words nothing is left, no key without its value."""
    script = json.dumps({"command": "\n".join(words(30, f"line{number}-") for number in range(9))})
    asked, answered = a_round(words(200, "thought"), "Traceback\n" + words(200, "frame"), id="open")
    (call,) = asked.calls
    called = replace(asked, calls=(replace(call, arguments=script),), attached=script)
    outcome = compacted(SYSTEM, LAST, called, answered, limit=60)

    assert outcome.state.units[-1].content == f"{HEADER}\n> {call.name} […]\n  Traceback […]"


def test_a_step_that_gives_no_more_is_not_taken_again() -> None:
    asked: list[int] = []

    def take(state: ContextState, excess: int, kit: Kit) -> tuple[Unit, ...]:
        asked.append(excess)
        return state.units

    state = a_state(SYSTEM, a_unit(words(200), id="first"), LAST, limit=100, config=FULL)
    assert taken(Reduction(Why.TEXTS_SHORTENED, must_stay, take), state, KIT).units == state.units
    assert len(asked) == 1


def test_a_digest_with_little_room_begins_with_what_was_called() -> None:
    outcome = compacted(SYSTEM, LAST, *a_calling_round(6), limit=60)

    assert "assistant:\n  I write the files" in outcome.state.units[-1].content
    assert "  ok" not in outcome.state.units[-1].content


def test_a_digest_stays_within_its_room_also_where_a_tools_name_does_not_fit() -> None:
    asked, answered = a_round("", "ok", id="open")
    (call,) = asked.calls
    named = replace(asked, calls=(replace(call, name=words(40)),), attached=words(500))
    outcome = compacted(SYSTEM, LAST, named, answered, limit=45)

    assert outcome.state.units[-1].content.startswith(HEADER)
    assert outcome.estimated_tokens_after <= 45


def test_an_earlier_handover_gives_way_to_what_must_stay() -> None:
    told_before = a_unit(f"{OPENING}{words(500)}", id="handover", kind=Kind.SUMMARY, priority=Priority.P1)
    units = (SYSTEM, a_unit("hello"), told_before, *a_talk(20, words=40), pinned(a_unit(words(380))), LAST)
    outcome = compacted(*units, limit=400)

    assert outcome.recovered is RecoveryMode.FRESH_START
    assert told(outcome) == []


def test_a_round_smaller_than_its_digest_leaves_without_one() -> None:
    outcome = compacted(SYSTEM, LAST, *a_round("look", "found it", id="open"), limit=10)

    assert ids(outcome.state) == ["system", "last"]
    assert told(outcome) == [Why.HEADS_LEFT, Why.GONE_ENTIRELY] or told(outcome) == [Why.GONE_ENTIRELY]


def test_of_a_pinned_open_round_that_cannot_stay_a_digest_stays() -> None:
    asked, *answered = a_calling_round(3)
    outcome = compacted(SYSTEM, LAST, pinned(asked), *answered, limit=400)

    assert told(outcome) == [Why.MARKED_LEFT_OUT]
    assert is_digest(outcome.state.units[-1])


def test_of_two_hundred_pinned_messages_the_newest_stay() -> None:
    pins = [pinned(a_unit(words(40, f"p{number}x"), id=f"pin{number}")) for number in range(200)]
    outcome = compacted(SYSTEM, a_unit("hello", id="first"), *pins, LAST, limit=4096)

    assert told(outcome) == [Why.MARKED_LEFT_OUT]
    left = [name for name in ids(outcome.state) if name.startswith("pin")]
    assert left == [f"pin{number}" for number in range(200 - len(left), 200)]
    assert len(left) > 95
    assert outcome.forced_ids == {pin.id for pin in pins} - set(left)
    assert all(name in str(outcome.warnings[0]) for name in outcome.forced_ids)


def test_the_lowest_mark_goes_first_whatever_its_age() -> None:
    text = words(100)
    marked = [
        p1(a_unit(text, id="p1")),
        pinned(a_unit(text, id="pinned")),
        p1(pinned(a_unit(text, id="both"))),
        replace(pinned(a_unit(text, id="p3")), priority=Priority.P3),
    ]

    left = [ids(compacted(*marked, LAST, limit=limit).state) for limit in (350, 250, 150, 50)]

    assert left == [["p1", "pinned", "both", "last"], ["p1", "both", "last"], ["both", "last"], ["last"]]


def test_what_was_said_in_a_pinned_message_that_left_stays_in_the_ledger() -> None:
    rule = "You must never deploy on a Friday."
    pins = [pinned(a_unit(f"{rule}\n{words(90)}")), *(pinned(a_unit(words(90))) for _ in range(10))]
    outcome = compacted(SYSTEM, *pins, LAST, limit=800)

    assert rule in "\n".join(unit.content for unit in outcome.state.units)


# Where there is hardly any room, and none.


@pytest.mark.parametrize("beside", [LEAST_ROOM, LEAST_ROOM + 1, 200, 1000])
@pytest.mark.parametrize("mode", [RecoveryMode.FRESH_START, RecoveryMode.TRUNCATE])
def test_sixty_four_tokens_beside_what_is_never_shortened_are_enough(mode: RecoveryMode, beside: int) -> None:
    units = (SYSTEM, FIRST, *a_talk(30, words=40), pinned(a_unit(words(500))), LAST, *a_calling_round(5))

    outcome = compacted(*units, limit=9 + beside, config=replace(FULL, recovery_mode=mode))

    assert outcome.status is Status.APPLIED
    assert is_digest(outcome.state.units[-1])
    assert content(outcome, "first").startswith("first0 first1 ")


def test_without_room_even_for_what_is_never_shortened_it_fails_with_both_sizes() -> None:
    state = a_state(SYSTEM, FIRST, replace(LAST, content=words(500)), limit=400, config=FULL)

    outcome = run(compact(state, KIT))

    assert (outcome.status, outcome.code, outcome.state) == (Status.FAILED, Code.BREAKER_FAILED, state)
    assert "needs ≈504 tokens, the limit is 400" in outcome.reason
    assert outcome.forced_ids == frozenset()


def test_where_no_recovery_is_wished_for_nothing_protected_is_shortened_but_results() -> None:
    config = replace(FULL, recovery_mode=RecoveryMode.ERROR)
    state = a_state(SYSTEM, FIRST, LAST, limit=600, config=config)

    assert run(compact(state, KIT)).code is Code.BREAKER_FAILED
    assert told(compacted(SYSTEM, LAST, *a_round("look", words(900)), limit=600, config=config)) == [
        Why.RESULTS_SHORTENED
    ]


def test_of_agents_messages_alone_the_last_stays_or_a_word_that_they_were_there() -> None:
    said = [a_unit(words(300), id=f"a{number}", role=Role.ASSISTANT) for number in range(4)]

    assert ids(compacted(*said, limit=200).state)[-1] == "a3"
    assert compacted(*(replace(unit, image_tokens=200) for unit in said), limit=64).state.units


def test_an_empty_first_request_with_an_image_gives_way_to_the_next() -> None:
    units = (a_unit("", image_tokens=900), a_unit(words(300), id="second", image_tokens=900), *a_talk(4), LAST)
    outcome = compacted(*units, limit=80)

    assert ids(outcome.state)[-1] == "last"


def test_nothing_is_to_be_shortened_in_an_empty_context() -> None:
    assert not play(make_room, a_state(limit=9)).changed


def test_a_first_request_of_data_keeps_a_word_at_least() -> None:
    outcome = compacted(SYSTEM, a_unit(json.dumps(list(range(900))), id="first"), LAST, limit=40)

    assert content(outcome, "first").strip()


# Whatever the conversation, whatever the limit.


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_every_history_comes_under_every_limit_that_leaves_a_little_room(data: st.DataObject) -> None:
    mode = data.draw(st.sampled_from((RecoveryMode.FRESH_START, RecoveryMode.TRUNCATE)))
    state = data.draw(histories.states(recovery_mode=mode))
    least = least_of(state).tokens
    limit = least + LEAST_ROOM + data.draw(st.sampled_from((0, 1, 20, 100, 300, 1000)))
    names = data.draw(st.one_of(st.none(), st.sampled_from(sorted(REGISTRY)).map(lambda name: (name,))))
    state = replace(state, limit=limit)

    outcome = run(compact(state, histories.KIT, chain=names))

    check(state, outcome)
    again = run(compact(outcome.state, histories.KIT, chain=names))
    assert again.state == outcome.state


texts = st.sampled_from((3, 40, 400)).flatmap(
    lambda size: st.integers(0, 99).map(lambda seed: " ".join(f"{seed}word{number}" for number in range(size)))
)


@st.composite
def conversations(draw: st.DrawFn) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for number in range(draw(st.integers(1, 12))):
        role = draw(st.sampled_from(("system", "user", "user", "assistant", "round")))
        mark = draw(st.sampled_from(({}, {}, {}, {"pinned": True}, {"priority": 1}, {"priority": 3})))
        marks = {"dominds": mark} if mark else {}
        if role == "round":
            count = draw(st.integers(1, 3))
            function = {"name": "write", "arguments": json.dumps({"text": draw(texts)})}
            calls = [{"id": f"c{number}-{n}", "type": "function", "function": function} for n in range(count)]
            messages.append({"role": "assistant", "content": draw(texts), "tool_calls": calls} | marks)
            messages += [{"role": "tool", "tool_call_id": call["id"], "content": draw(texts)} for call in calls]
        else:
            messages.append({"role": role, "content": draw(texts)} | marks)
    return messages


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(conversations(), st.sampled_from((0, 10, 100, 800)))
def test_every_conversation_has_a_result_that_a_provider_takes(messages: list[dict[str, Any]], more: int) -> None:
    whole = compact_messages(messages, limit_tokens=10**6, embedder="none").state
    limit = least_of(whole).tokens + LEAST_ROOM + more

    outcome = compact_messages(messages, limit_tokens=limit, embedder="none")

    assert outcome.status is not Status.FAILED
    assert outcome.estimated_tokens_after <= limit
    assert broken_request(outcome.messages) == []
    never = [one for one, unit in zip(messages, whole.units, strict=True) if unit.id in untouched(whole.units)]
    assert [one for one in never if one not in outcome.messages] == []
    places = [messages.index(one) for one in outcome.messages if one in messages]
    assert len(places) < len(messages) or outcome.status is Status.SKIPPED or outcome.forced_ids
    again = compact_messages(outcome.messages, limit_tokens=limit, embedder="none")
    assert again.messages == outcome.messages
