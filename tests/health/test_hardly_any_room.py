"""Where hardly anything fits there is a result all the same: valid, within the limit, and each shortening is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from health.compaction.laws.invariants import broken_request
from health.compaction.reading.messages import sendable
from health.compaction.terms.outcome import Status
from health.services import compact_messages
from health.tokens.messages import count_messages

SYSTEM = {"role": "system", "content": "You keep the books of a small harbour."}
LAST = {"role": "user", "content": "Which berth is free tonight?"}


def words(count: int, name: str = "w") -> str:
    return " ".join(f"{name}{number}" for number in range(count))


def talk(turns: int) -> list[dict[str, Any]]:
    roles = ("user", "assistant")
    return [{"role": roles[at % 2], "content": words(40, f"said{at}x")} for at in range(turns)]


def a_round(result: str) -> list[dict[str, Any]]:
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    asked = {"role": "assistant", "content": "", "tool_calls": [call]}
    return [asked, {"role": "tool", "tool_call_id": "c1", "content": result}]


def pins(count: int) -> list[dict[str, Any]]:
    mark = {"pinned": True}
    return [{"role": "user", "content": words(40, f"pin{number}x"), "dominds": mark} for number in range(count)]


BESIDE = 64 + count_messages([SYSTEM, LAST], "")
CASES = {
    "64 tokens beside instructions and newest message": ([SYSTEM, *talk(40), LAST], BESIDE),
    "a first message of 5,000 tokens": (
        [SYSTEM, {"role": "user", "content": words(2_000)}, *talk(9)[1:], LAST],
        4_096,
    ),
    "a newest result larger than the window": ([SYSTEM, *talk(4), LAST, *a_round(words(9_000))], 4_096),
    "a newest result of rows larger than the window": (
        [SYSTEM, *talk(4), LAST, *a_round(json.dumps([{"berth": at, "boat": words(3)} for at in range(4_000)]))],
        4_096,
    ),
    "200 pinned messages": ([SYSTEM, *talk(4), *pins(200), LAST], 4_096),
    "200 pinned messages and 64 tokens": ([SYSTEM, *pins(200), LAST], BESIDE),
}


@pytest.mark.parametrize("name", CASES)
def test_there_is_a_result_and_it_says_what_gave_way(name: str) -> None:
    messages, limit = CASES[name]
    assert count_messages(messages, "") > limit

    outcome = compact_messages(messages, limit_tokens=limit, embedder="none")

    assert outcome.status is Status.APPLIED
    assert count_messages(sendable(outcome.messages), "") <= limit
    assert broken_request(outcome.messages) == []
    assert outcome.messages[0] == SYSTEM
    assert LAST in outcome.messages
    assert outcome.removed_ids or outcome.forced_ids
    assert outcome.warnings or not outcome.forced_ids


@pytest.mark.parametrize("name", CASES)
def test_so_it_is_on_the_command_line(name: str, tmp_path: Path) -> None:
    messages, limit = CASES[name]
    (file := tmp_path / "chat.json").write_text(json.dumps(messages))
    out = tmp_path / "out.json"

    call_command("compact", str(file), "--limit", str(limit), "--embedder", "none", "--out", str(out))

    found = json.loads(out.read_text())
    assert count_messages(sendable(found), "") <= limit
    assert found == list(compact_messages(messages, limit_tokens=limit, embedder="none").messages)
