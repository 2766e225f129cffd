"""`manage.py context_stats`: what is known of a context, for people and for programs."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from dialogs.compaction.work import perform
from dialogs.compaction.writes.manual_compaction import request
from dialogs.models import Dialog
from dialogs.turns.writes.messages import post_message
from health.compaction.snapshot import as_json, begun
from tests.builders import a_reading
from tests.dialogs.compacting_builders import a_history, guard


def run(*args: str) -> str:
    out = StringIO()
    call_command("context_stats", *args, stdout=out)
    return out.getvalue()


@pytest.fixture
def busy(dialog: Dialog, alice: User) -> Dialog:
    """Guarded, measured, compacted once, in the middle of a task."""
    a_history(dialog, pairs=12)
    guard(dialog)
    perform(request(dialog=dialog, by=alice).pk, embedder="static")
    post_message(dialog=dialog, content="And now?")
    a_reading(dialog, 600)
    task = begun("Label the boxes").updated(completed_actions=[f"step{number}" for number in range(9)])
    dialog.refresh_from_db()
    dialog.task_snapshot = as_json(task.acted("open").observed("The key is lost"))
    dialog.save()
    return dialog


def test_people_read_it_line_by_line(busy: Dialog) -> None:
    told = run(str(busy.pk))

    assert "Messages: 26 stored, " in told
    assert "Measured: 600 of 100,000 prompt tokens, healthy." in told
    assert "of 3,500 tokens, pressure normal" in told
    assert "Limit: 3,500 by agent (set for this agent)." in told
    assert "Task: Label the boxes\n  executing, 10 actions\n  newest: step2, step3" in told
    assert "  seen: The key is lost" in told
    assert "Compactions: 1\n" in told
    assert "manual  applied  ≈" in told


def test_programs_read_the_same_as_json(busy: Dialog) -> None:
    told = json.loads(run(str(busy.pk), "--json"))

    assert (told["dialog"], told["messages"], told["health"]["prompt_tokens"]) == (str(busy.pk), 26, 600)
    assert sum(told["budget"]["parts"].values()) == told["budget"]["tokens"]
    assert told["budget"]["trace"][0]["tokens"] == 3500
    assert told["task"]["earlierActions"] == 2
    assert [run["status"] for run in told["compactions"]] == ["applied"]
    assert told["archive"]["messages"] > 0
    assert told["archive"]["estimated_tokens"] > 0
    assert 0 < told["sent"] < 26


def test_every_estimate_carries_its_mark(busy: Dialog) -> None:
    parts = [line for line in run(str(busy.pk)).splitlines() if line.startswith("  messages") or "Archive" in line]

    assert len(parts) == 2
    assert all("≈" in line for line in parts)


def test_a_dialog_in_which_nothing_was_said_can_be_looked_at(dialog: Dialog) -> None:
    told = run(str(dialog.pk))

    assert "Messages: 0 stored, 0 would be sent.\nMeasured: nothing yet." in told
    assert "nobody guards it" in told
    assert "Task: none has begun.\nCompactions: 0\nArchive: 0 messages, ≈0 tokens." in told


@pytest.mark.parametrize("named", ["00000000-0000-4000-8000-000000000000", "the box"])
def test_an_unknown_dialog_is_named(db: None, named: str) -> None:
    with pytest.raises(CommandError, match=f"There is no dialog '{named}'"):
        run(named)
