"""Corrections by tools: a record in a new state takes the place of what an earlier result told of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from health.compaction.reading.messages import parse
from health.compaction.trimming.records import told_anew
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
    gone = told_anew(units)
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
    ],
    ids=["the same call", "a file read again", "another call of the same record", "a number as its name"],
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
        [("find", BOAT, '{"boat": "Skua-7", '), ("lift", BOAT, "[]")],
    ],
    ids=[
        "another record",
        "another page",
        "two payments",
        "what else it said",
        "an error",
        "no arguments",
        "no record",
    ],
)
def test_what_only_looks_alike_stands(asked: list[Asked]) -> None:
    assert outdated(*asked) == []


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
