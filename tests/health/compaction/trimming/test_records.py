"""Corrections by tools: a record in a new state takes the place of what an earlier result told of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from health.compaction.reading.messages import parse
from health.compaction.trimming.records import superseded, without_records
from health.services import compact_messages
from health.tokens.messages import count_messages

Asked = tuple[str, dict[str, Any], object]


def rounds(*asked: Asked) -> list[dict[str, Any]]:
    """Calls with their results, each after a question."""
    found: list[dict[str, Any]] = []
    for number, (tool, arguments, result) in enumerate(asked):
        call = {"name": tool, "arguments": json.dumps(arguments)}
        found += [
            {"role": "user", "content": f"Question {number}?"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": f"c{number}", "type": "function", "function": call}],
            },
            {
                "role": "tool",
                "tool_call_id": f"c{number}",
                "content": result if isinstance(result, str) else json.dumps(result),
            },
        ]
    return found


def outdated(*asked: Asked) -> list[int]:
    """The numbers of the calls whose results are told anew."""
    units = parse(rounds(*asked)).units
    gone = superseded(units).results
    return [int(unit.answers.removeprefix("c")) for unit in units if unit.id in gone and unit.answers]


BOAT = {"boat": "Skua-7"}


@pytest.mark.parametrize(
    "asked",
    [
        [("find", BOAT, {"berth": "4"}), ("find", BOAT, {"berth": "9"})],
        [("read", {"path": "a.py"}, "x = 1"), ("read", {"path": "a.py"}, "x = 2")],
        [("find", BOAT, BOAT | {"state": "afloat"}), ("lift", BOAT, BOAT | {"state": "ashore"})],
        [
            ("find", {"id": 41207}, {"id": 41207, "state": "new"}),
            ("close", {"id": 41207}, {"id": 41207, "state": "done"}),
        ],
        [("quay", {}, {"berth": "B-17", "state": "let"}), ("quay", {}, {"berth": "B-17", "state": "free"})],
    ],
    ids=[
        "the same call",
        "a file read again",
        "another call of the same record",
        "a number as its name",
        "a call that names nothing",
    ],
)
def test_the_newest_result_takes_the_place(asked: list[Asked]) -> None:
    assert outdated(*asked) == [0]


@pytest.mark.parametrize(
    "asked",
    [
        [("find", BOAT, {"berth": "4"}), ("find", {"boat": "Tern-2"}, {"berth": "9"})],
        [
            ("find", {"word": "keel", "page": 1}, {"word": "keel", "hits": [1]}),
            ("find", {"word": "keel", "page": 2}, {"word": "keel", "hits": [2]}),
        ],
        [("pay", BOAT | {"fee": 40}, BOAT | {"fee": 40}), ("pay", BOAT | {"fee": 55}, BOAT | {"fee": 55})],
        [("find", BOAT, BOAT | {"owner": "Ines"}), ("lift", BOAT, BOAT | {"state": "ashore"})],
        [("find", BOAT, {"berth": "4"}), ("find", BOAT, "Error: the register is closed")],
        [("next", {}, "line 1"), ("next", {}, "line 2")],
        [("quay", {}, {"berth": "B-17", "state": "let"}), ("quay", {}, {"berth": "B-18", "state": "free"})],
        [("quay", {}, {"berth": "B-17", "state": "let"}), ("boat", {}, {"berth": "B-17", "state": "afloat"})],
        [("find", BOAT, '{"boat": "Skua-7", '), ("lift", BOAT, "[]")],
    ],
    ids=[
        "another record",
        "another page",
        "two payments",
        "what else it said",
        "an error",
        "no arguments",
        "another record of a call that names nothing",
        "another tool",
        "no record",
    ],
)
def test_what_only_looks_alike_stands(asked: list[Asked]) -> None:
    assert outdated(*asked) == []


def standing(*asked: Asked) -> list[object]:
    """The results that stand, without the records in them that are told anew."""
    units = parse(rounds(*asked)).units
    old = superseded(units)
    told = [unit for unit in units if unit.answers and unit.id not in old.results]
    left = [without_records(unit.content, old.rows.get(unit.id, {})) for unit in told]
    return [json.loads(text) for text in left if text]


LET = {"berth_id": "B-17", "state": "let"}
FREE = {"berth_id": "B-17", "state": "free"}
NEXT = {"berth_id": "B-18", "state": "free"}


@pytest.mark.parametrize(
    ("asked", "stands"),
    [
        ([("list", {}, [FREE, NEXT]), ("let", {"berth": "B-17"}, LET)], [[NEXT], LET]),
        ([("list", {}, {"berths": [FREE, NEXT]}), ("let", {}, {"done": LET})], [{"berths": [NEXT]}, {"done": LET}]),
        ([("show", {"berth": "B-17"}, FREE), ("list", {}, {"berths": [LET, NEXT]})], [{"berths": [LET, NEXT]}]),
        ([("list", {"quay": "north"}, [FREE, NEXT]), ("list", {"free": False}, [LET])], [[NEXT], [LET]]),
        ([("list", {}, [FREE]), ("let", {"berth": "B-17"}, LET)], [LET]),
        ([("list", {}, {"all": [FREE], "note": None}), ("let", {}, LET)], [{"note": None}, LET]),
        (
            [("show", {"berth": "B-17"}, FREE | {"metres": 9}), ("let", {"berth": "B-17"}, LET | {"ok": True})],
            [{"berth_id": "B-17", "metres": 9}, LET | {"ok": True}],
        ),
        (
            [
                ("list", {}, [{"boat": "T2"} | FREE, {"boat": "T3"}]),
                ("let", {"boat": "T2"}, {"boat": "T2", "state": "let"}),
            ],
            [[{"boat": "T2", "berth_id": "B-17"}, {"boat": "T3"}], {"boat": "T2", "state": "let"}],
        ),
        (
            [("show", {"船": "海燕"}, {"船": "海燕", "泊位": 4}), ("move", {"船": "海燕"}, {"船": "海燕", "泊位": 9})],
            [{"船": "海燕", "泊位": 9}],
        ),
    ],
    ids=[
        "a row",
        "deep in both",
        "the newest in a list",
        "two lists",
        "nothing is left",
        "what else it said",
        "fewer keys",
        "a short name",
        "a name of two characters",
    ],
)
def test_a_record_within_a_list_is_told_anew(asked: list[Asked], stands: list[object]) -> None:
    assert standing(*asked) == stands


@pytest.mark.parametrize(
    "asked",
    [
        [("list", {}, [FREE, NEXT]), ("let", {"berth": "B-19"}, LET | {"berth_id": "B-19"})],
        [("list", {"day": "1 May"}, [FREE, NEXT]), ("list", {"day": "2 May"}, [LET, NEXT])],
        [("list", {}, [FREE | {"metres": 9}, NEXT]), ("let", {"berth": "B-17"}, LET | {"skipper": "Ines"})],
        [("list", {}, [FREE | {"metres": 9}, NEXT]), ("let", {"berth": "B-17"}, FREE)],
        [("boats", {}, [{"boat": at, "berth": "B-17"} for at in "ab"]), ("show", LET, {"boat": "c", "berth": "B-17"})],
        [("list", {}, [FREE, NEXT]), ("let", {"berth": "B-17"}, {"error": "berth B-17: refused"})],
    ],
    ids=["another record", "another day", "what else both said", "nothing new", "what several share", "an error"],
)
def test_what_only_looks_alike_within_a_list_stands(asked: list[Asked]) -> None:
    assert standing(*asked) == [result for _, _, result in asked]


@pytest.mark.parametrize("share", [0.5, 0.25, 0.15])
def test_in_a_compaction_only_the_newest_state_of_each_record_stands(share: float) -> None:
    states = ["ordered", "built", "painted", "launched", "chartered", "sold"]
    boats = ["Skua-7", "Tern-2", "Gannet-5"]
    asked = [
        ("find", {"boat": boat}, {"boat": boat, "state": state, "papers": f"{boat[0]}{at}-{len(boat)}", "crew": at % 4})
        for at, state in enumerate(states * 3)
        for boat in boats
    ]
    messages = [*rounds(*asked), {"role": "user", "content": "Which boats do we have?"}]

    outcome = compact_messages(messages, limit_tokens=int(share * count_messages(messages, "")), embedder="none")

    text = "\n".join(str(message["content"]) for message in outcome.messages)
    assert all(f"{boat} state=sold" in text or f'"{boat}", "state": "sold"' in text for boat in boats)
    assert not any(state in text for state in states[:-2])
