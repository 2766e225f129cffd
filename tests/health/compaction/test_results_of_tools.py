"""Results of tools in few tokens, from outside: what a later call used and an error first, no value altered."""

from __future__ import annotations

import json
from typing import Any

from health.compaction.trimming.json_rows import in_rows
from health.services import compact_messages
from health.tokens.messages import count_messages

USED, ERROR = "LK-4471", "E409: berth 17 is already let to the Marta Helene"
KINDS = ("cutter", "barge", "ketch", "lighter", "trawler")


def boats() -> list[dict[str, Any]]:
    rows = [{"id": f"LK-{4400 + at}", "kind": KINDS[at % 5], "length": 11 + at % 17} for at in range(120)]
    return [row | {"note": f"seen by the harbour office in week {at % 50}"} for at, row in enumerate(rows)]


def called(number: int, name: str, result: Any, **arguments: Any) -> list[dict[str, Any]]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": f"call_{number}", "type": "function", "function": function}
    answer = {"role": "tool", "tool_call_id": call["id"], "content": json.dumps(result)}
    return [{"role": "assistant", "content": None, "tool_calls": [call]}, answer]


def history() -> list[dict[str, Any]]:
    return [
        {"role": "user", "content": "Look after the boats of the harbour."},
        *called(1, "list_boats", boats(), harbour="Lindesund"),
        *called(2, "let_berth", {"error": ERROR}, boat=USED, berth=17),
        {"role": "assistant", "content": "That berth is taken. I look for another one."},
        {"role": "user", "content": "Take your time."},
        {"role": "assistant", "content": "I will."},
        {"role": "user", "content": "And now?"},
    ]


def compacted(ratio: float) -> str:
    limit = int(ratio * count_messages(history(), ""))
    outcome = compact_messages(history(), limit_tokens=limit, embedder="none")
    return "\n".join(message["content"] or "" for message in outcome.messages)


def test_the_row_that_a_later_call_used_and_the_error_stand_where_most_rows_are_gone() -> None:
    text = compacted(0.08)
    assert f"id={USED}" in text
    assert ERROR in text
    assert text.count("id=LK-") < 40


def test_the_digest_says_which_call_each_result_is_of() -> None:
    lines = compacted(0.08).splitlines()
    (asked,) = [at for at, line in enumerate(lines) if "list_boats" in line]
    (failed,) = [at for at, line in enumerate(lines) if "let_berth" in line]
    assert "harbour=Lindesund" in lines[asked]
    assert all(asked < at < failed for at, line in enumerate(lines) if "id=LK-" in line)


def test_no_row_is_altered() -> None:
    known = {in_rows(json.dumps(row)) for row in boats()}
    rows = [line.strip() for line in compacted(0.08).splitlines() if "id=LK-" in line]
    assert len(rows) > 5
    assert set(rows) <= known
