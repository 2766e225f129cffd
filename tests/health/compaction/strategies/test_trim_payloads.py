"""Bulky payloads are trimmed by what they are; whatever is spoken of, protected or small stays byte for byte."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from health.compaction.config import ContextConfig, PayloadLimits
from health.compaction.laws.invariants import broken
from health.compaction.shortening import make_room
from health.compaction.strategies.trim_payloads import trim_payloads
from health.compaction.terms.ports import Attempt
from health.compaction.terms.units import Call, Kind, Role, Unit
from tests.health.compaction.builders import a_round, a_state, a_unit, broken_laws, ids, play

ORDERS = json.dumps([{"id": f"ORD-{i:04}", "status": "shipped", "weight": i} for i in range(100)])
LOG = "\n".join(f"2026-01-01 10:00:{i % 60:02} INFO stored item {i}" for i in range(100))
DIFF = "\n".join(["--- a/x", "+++ b/x", "@@ -1,90 +1,90 @@", *([" same old line"] * 90), "-old", "+new"])


def trimmed(*units: Unit, task: str = "", **limits: int) -> Attempt:
    """Between a first request and a last message, which are protected."""
    config = ContextConfig(payloads=PayloadLimits(**limits))
    talk = (a_unit("begin", id="first"), *units, a_unit("go on", id="last"))
    state = a_state(*(replace(unit, timestamp=float(at)) for at, unit in enumerate(talk)), config=config, task=task)
    attempt = play(trim_payloads, state)
    assert broken_laws(state, attempt) == []
    return attempt


def result(attempt: Attempt, unit_id: str = "r-t0") -> str:
    return next(unit.content for unit in attempt.state.units if unit.id == unit_id)


def of_tool(name: str, content: str) -> tuple[Unit, ...]:
    asked, answered = a_round("looking", content, id="r")
    return replace(asked, calls=(Call(id=asked.calls[0].id, name=name, arguments="{}"),)), answered


def said(content: str, **fields: Any) -> Unit:
    return a_unit(content, id="said", role=Role.ASSISTANT, **fields)


def test_a_long_json_result_stays_json_with_its_ends() -> None:
    orders = json.loads(result(trimmed(*a_round("look", ORDERS, id="r"))))

    assert (orders[0]["id"], orders[-1]["id"]) == ("ORD-0000", "ORD-0099")
    assert "[… 92 of 100 items left out …]" in orders


def test_a_log_keeps_its_one_error() -> None:
    lines = LOG.splitlines()
    lines[50] = "2026-01-01 10:00:00 ERROR disk full"

    assert "ERROR disk full" in result(trimmed(*a_round("look", "\n".join(lines), id="r")))


def test_a_diff_keeps_its_changes() -> None:
    assert result(trimmed(*a_round("look", DIFF, id="r"))).endswith("left out …]\n same old line\n-old\n+new")


@pytest.mark.parametrize("tool", ["elementsJson", "webElements"])
def test_ui_data_is_trimmed_by_the_rules_of_seed_3(tool: str) -> None:
    elements = [{"title": f"button number {i}", "help": "press it"} for i in range(250)]

    left = json.loads(result(trimmed(*of_tool(tool, json.dumps(elements)))))

    assert left == [{"title": f"button number {i}"} for i in range(200)]


def test_an_order_that_somebody_speaks_of_or_the_task_names_stays() -> None:
    spoken_of = result(trimmed(*a_round("look", ORDERS, id="r"), said("I see that ORD-0050 is on its way.")))
    asked_for = result(trimmed(*a_round("look", ORDERS, id="r"), task="Find out about ORD-0033."))

    assert ("ORD-0050" in spoken_of, "ORD-0051" in spoken_of, "ORD-0033" in asked_for) == (True, False, True)


def test_an_order_of_which_a_call_speaks_stays() -> None:
    later = of_tool("cancel", "cancelled")
    call = replace(later[0].calls[0], arguments='{"order": "ORD-0042"}')
    first = a_round("look", ORDERS, id="q")

    attempt = trimmed(*first, replace(later[0], calls=(call,)), later[1])

    assert "ORD-0042" in result(attempt, "q-t0")


def test_a_quantity_somebody_speaks_of_keeps_nothing() -> None:
    assert result(trimmed(*a_round("look", ORDERS, id="r"), said("We have 50 of 100."))) == result(
        trimmed(*a_round("look", ORDERS, id="r"))
    )


def test_a_small_result_is_not_touched() -> None:
    attempt = trimmed(*a_round("look", '{"a":    1}', id="r"))

    assert not attempt.changed
    assert attempt.note == "no payload that could be trimmed"


def test_where_bulk_begins_is_set_in_one_place() -> None:
    assert not trimmed(*a_round("look", ORDERS, id="r"), bulky_tokens=10_000).changed


@pytest.mark.parametrize(("pinned", "limit"), [(False, 1000), (True, 400)])
def test_a_result_of_the_open_round_that_fits_or_is_pinned_is_not_touched(pinned: bool, limit: int) -> None:
    asked, answered = a_round("look", ORDERS, id="r")
    state = a_state(a_unit("begin"), asked, replace(answered, pinned=pinned), limit=limit)

    assert not play(trim_payloads, state).changed


def test_a_result_of_the_open_round_that_does_not_fit_is_trimmed_and_stays_json() -> None:
    state = a_state(a_unit("begin"), *a_round("look", ORDERS, id="r"), limit=400)

    attempt = play(make_room, state)

    assert attempt.forced_ids == {"r-t0"}
    assert attempt.state.fits
    assert broken(state.units, attempt.state.units, may_change=attempt.forced_ids) == []
    told = json.loads(result(attempt))
    assert "exceeds" in told["note"]
    assert told["result"][0]["id"] == "ORD-0000"


def test_of_two_open_results_only_as_many_are_trimmed_as_it_takes() -> None:
    state = a_state(a_unit("begin"), *a_round("look", ORDERS, ORDERS[:200], id="r"), limit=600)

    attempt = play(make_room, state)

    assert result(attempt) != ORDERS
    assert result(attempt, "r-t1") == ORDERS[:200]


def test_what_is_still_too_much_is_trimmed_further_and_stays_json() -> None:
    large = json.dumps([{"id": f"ORD-{i:04}", "note": "word " * 90} for i in range(100)])
    state = a_state(a_unit("begin"), *a_round("look", large, id="r"), limit=300)

    attempt = play(make_room, state)

    assert attempt.state.fits
    json.loads(result(attempt))


@pytest.mark.parametrize("kind", [Kind.SUMMARY, Kind.PLACEHOLDER, Kind.PLAN_REF])
def test_what_compaction_wrote_and_plans_are_not_touched(kind: Kind) -> None:
    assert not trimmed(a_unit(ORDERS, kind=kind)).changed


def test_data_in_a_fence_is_trimmed_and_the_words_around_stay() -> None:
    content = trimmed(said(f"Look here:\n```json\n{ORDERS}\n```\nIs that right?")).state.units[1].content

    before, data, after = content.split("```")
    assert (before, after) == ("Look here:\n", "\nIs that right?")
    assert len(json.loads(data.removeprefix("json"))) == 9


@pytest.mark.parametrize("unit", [said(f"See:\n```\n{LOG}\n```"), said(LOG, kind=Kind.LOG)])
def test_a_log_in_a_bare_fence_and_a_message_that_is_a_log_are_trimmed(unit: Unit) -> None:
    assert "similar lines left out" in trimmed(unit).state.units[1].content


@pytest.mark.parametrize("label", ["python", "js", ""])
def test_code_with_lines_alike_is_not_taken_for_a_log(label: str) -> None:
    code = "import os\n" if not label else ""
    code += "def table():\n" + "".join(f"    put({i}, {i * 7})\n" for i in range(150))

    assert not trimmed(said(f"```{label}\n{code}```\n")).changed


def test_a_result_that_is_code_is_not_taken_for_a_log() -> None:
    code = "".join(f"put({i}, {i * 7})\n" for i in range(150))
    asked, answered = a_round("cat", code, id="r")

    assert not trimmed(asked, replace(answered, kind=Kind.CODE)).changed


@pytest.mark.parametrize(
    "content",
    [
        " ".join(f"The {word} of {word}s is a {word}." for word in ("king", "song", "book")) * 40,
        ORDERS[:-1] + ',{"a" "b"}]',
        # One token for the counter of words; its label is more.
        f"Picture one: {'aB3kQ9zLmN7pR5tVwY1c' * 30}",
    ],
    ids=["words", "broken JSON", "what saves no tokens"],
)
def test_words_broken_json_and_what_saves_no_tokens_are_left_alone(content: str) -> None:
    assert not trimmed(*a_round("look", content, id="r"), bulky_tokens=2).changed
    assert not trimmed(said(content)).changed


def test_every_trimmed_message_was_read_in_full() -> None:
    attempt = trimmed(*a_round("look", ORDERS, "small", id="r"))

    assert [(read.source_id, read.read, read.total) for read in attempt.reads] == [("r-t0", len(ORDERS), len(ORDERS))]


def test_nothing_is_dropped() -> None:
    units = (*a_round("look", ORDERS, id="r"), *a_round("look", LOG, id="q"))

    assert ids(trimmed(*units).state) == ["first", *ids(units), "last"]


@pytest.mark.parametrize("share", [0.5, 0.8])
def test_of_a_list_that_is_too_long_the_rows_that_fit_stay(share: float) -> None:
    units = (a_unit("begin"), *a_round("look", ORDERS, id="r"), a_unit("go on"))
    whole = a_state(*units, config=ContextConfig(goal=1.0, accept=1.0, warning_threshold=1.0))
    state = replace(whole, limit=int(share * whole.estimated_tokens))

    orders = json.loads(result(play(trim_payloads, state)))

    rows = [order for order in orders if isinstance(order, dict)]
    assert 100 * share / 2.5 < len(rows) < 100 * share
    assert play(trim_payloads, state).state.estimated_tokens <= state.limit
