"""`manage.py compact` over files, as a person runs it; the last test runs it as a process, with a pipe."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from health.compaction.laws.invariants import broken_request
from tests.health.test_compacting import FIRST, LAST, a_chat
from tests.stack import ROOT


def run(file: Path, *options: str) -> tuple[str, str]:
    """What it says on standard output, and on standard error."""
    out, err = io.StringIO(), io.StringIO()
    call_command("compact", str(file), *options, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


@pytest.fixture
def chat(tmp_path: Path) -> Path:
    return written(tmp_path / "chat.json", a_chat())


def written(path: Path, value: Any) -> Path:
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


def test_it_says_what_was_kept_dropped_and_lost(chat: Path) -> None:
    out, err = run(chat, "--limit", "1200")

    assert out.startswith("Applied: ")
    assert "kept" in out
    assert "dropped" in out
    assert "facts in removed text" in out
    assert "Read 83 messages (messages)." in err
    assert "select_passages" in err


def test_json_is_one_object_on_standard_output(chat: Path) -> None:
    out, _ = run(chat, "--limit", "1200", "--json")

    value = json.loads(out)
    assert value["status"] == "applied"
    assert value["estimated_tokens_after"] <= 1200
    assert len(value["fates"]) == 83
    assert broken_request(value["messages"]) == []


def test_the_compacted_messages_can_be_compacted_again_from_their_file(chat: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    run(chat, "--limit", "1200", "--out", str(target))

    out, _ = run(target, "--limit", "1200")

    assert out.startswith("Skipped: ")
    assert json.loads(target.read_text())[-1] == LAST


def test_the_picture_is_written(chat: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.svg"

    run(chat, "--limit", "1200", "--plot", str(target))

    assert ET.parse(target).getroot().get("role") == "img"


def test_strategies_can_be_named(chat: Path) -> None:
    out, err = run(chat, "--limit", "1500", "--chain", "foo, truncate")

    assert "Warning: Unknown strategy: foo" in out
    assert "truncate" in err


def test_tools_in_a_request_are_counted(tmp_path: Path) -> None:
    tool = {"type": "function", "function": {"name": "look", "description": "word " * 500}}
    file = written(tmp_path / "body.json", {"messages": [FIRST], "tools": [tool]})

    out, _ = run(file, "--limit", "9000", "--json")

    assert json.loads(out)["estimated_tokens_before"] > 500


def test_what_an_export_leaves_out_is_said(tmp_path: Path) -> None:
    lines = [
        {"type": "summary", "summary": "Earlier", "leafUuid": "x"},
        {"type": "user", "sessionId": "s", "uuid": "1", "message": {"role": "user", "content": "hello"}},
    ]
    file = written(tmp_path / "log.jsonl", "\n".join(map(json.dumps, lines)))

    _, err = run(file, "--limit", "1000")

    assert "Claude Code log" in err
    assert "1 summary line left out." in err


def test_a_chat_that_cannot_fit_ends_with_status_one(tmp_path: Path) -> None:
    file = written(tmp_path / "big.json", [{"role": "user", "content": "word " * 4000}])

    with pytest.raises(SystemExit) as ended:
        run(file, "--limit", "1000")

    assert ended.value.code == 1


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("", "It is empty"),
        ("no json", "It is not JSON"),
        ("[]", "no messages"),
        ('{"role": "user", "content": "a"}\n{"role": "us', "Line 2 is not JSON"),
        ('[{"content": "a"}]', "messages[0] has no role"),
    ],
)
def test_a_file_that_is_no_chat_ends_with_status_two_and_says_why(tmp_path: Path, content: str, complaint: str) -> None:
    file = written(tmp_path / "bad.json", content)

    with pytest.raises(CommandError) as refused:
        run(file, "--limit", "1000")

    assert refused.value.returncode == 2
    assert complaint in str(refused.value)
    assert "bad.json" in str(refused.value)


def test_a_missing_file_and_a_limit_of_nothing_are_told(chat: Path, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="No such file"):
        run(tmp_path / "none.json", "--limit", "1000")
    with pytest.raises(CommandError, match="limit_tokens must be at least 1"):
        run(chat, "--limit", "0")


def test_unpaired_messages_are_refused_on_request(tmp_path: Path) -> None:
    file = written(tmp_path / "stray.json", [FIRST, {"role": "tool", "tool_call_id": "gone", "content": "42"}])

    run(file, "--limit", "1000")
    with pytest.raises(CommandError, match="'gone'"):
        run(file, "--limit", "1000", "--refuse-orphans")


def test_a_pipe_gives_json_alone_on_standard_output() -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", "compact", "-", "--limit", "1200", "--json"],
        cwd=ROOT,
        input=json.dumps(a_chat()).encode(),
        capture_output=True,
        check=True,
    )

    assert json.loads(done.stdout)["status"] == "applied"
    assert b"select_passages" in done.stderr
