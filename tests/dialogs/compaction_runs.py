"""Compaction runs as they stand in the database at some moment, for tests of what is shown of them."""

from __future__ import annotations

from typing import Any

from dialogs.models import Course, Dialog, ViewChange
from dialogs.turns.writes.messages import post_message
from health.models import CompactionRun


def a_run(dialog: Dialog, **fields: Any) -> CompactionRun:
    """A run that the guard began, at work at 4,500 of 5,000 tokens; said otherwise by the fields."""
    if dialog.current_leaf is None:
        post_message(dialog=dialog, content="Hello")
        dialog.refresh_from_db()
    assert dialog.current_leaf is not None
    values: dict[str, Any] = {
        "course": Course.objects.filter(dialog=dialog).latest("number"),
        "leaf": dialog.current_leaf,
        "turn": dialog.current_leaf.turn,
        "through_seq": dialog.current_leaf.seq,
        "trigger": "pre_request",
        "status": "running",
        "phase": "detection",
        "limit_tokens": 5000,
        "tokens_now": 4500,
    }
    return CompactionRun.objects.create(dialog=dialog, **(values | fields))


def an_applied_run(dialog: Dialog, **fields: Any) -> CompactionRun:
    """Its view holds since just now: 4,500 became 3,420 tokens."""
    values = {"status": "applied", "phase": "success", "estimated_before": 4500, "estimated_after": 3420}
    run = a_run(dialog, **(values | fields))
    Course.objects.filter(pk=run.course_id).update(head_run=run)
    ViewChange.objects.create(course=run.course, after=run, why=ViewChange.Why.APPLIED)
    return run


def a_step(phase: str, before: int, after: int, **fields: Any) -> dict[str, Any]:
    step = {"phase": phase, "estimated_before": before, "estimated_after": after}
    return {**step, "changed": after < before, "note": "", "ms": 12.0} | fields
