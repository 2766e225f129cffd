"""What a file must carry of compaction: marks, runs in every state that it takes along, and the moves of views."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils import timezone

from dialogs.models import Course, Dialog, Generation, Message, MessageMark, ViewChange
from health.models import CompactionRun
from tests.dialogs.compaction_runs import a_step

AGO = timezone.now() - timedelta(days=300)


def ids_of(dialog: Dialog) -> dict[int, int]:
    """Message ids by `seq`."""
    return dict(Message.objects.filter(dialog=dialog).values_list("seq", "pk"))


def a_run_at(dialog: Dialog, seq: int, **fields: Any) -> CompactionRun:
    """A run that began after this message."""
    leaf = Message.objects.get(dialog=dialog, seq=seq)
    values = {"trigger": "pre_request", "status": "applied", "phase": "success", "limit_tokens": 5000}
    return CompactionRun.objects.create(
        dialog=dialog, course=leaf.course, leaf=leaf, turn=leaf.turn, through_seq=seq, **(values | fields)
    )


def add_compactions(dialog: Dialog, generation: Generation) -> None:
    """In course 1 two views, the second made from the first and holding; in course 2 one failed, one undone."""
    ids = ids_of(dialog)
    MessageMark.objects.create(message_id=ids[2], pinned=True)
    MessageMark.objects.create(message_id=ids[3], priority=1, area="To Do List")
    summary = {"content": "They looked for a cat.", "kind": "summary", "covers": [ids[2], ids[3]]}
    first = a_run_at(dialog, 5, view=[summary, {"message": ids[5]}], removed=[ids[2], ids[3]], **full_facts(ids))
    tail = [{"message": ids[seq]} for seq in (6, 8, 9)]
    shortened = {"message": ids[7], "content": "a cat"}
    second = a_run_at(
        dialog, 9, parent_run=first, trigger="tool_result", recovered="truncate",
        view=[summary, {"message": ids[5]}, tail[0], shortened, *tail[1:]],
    )  # fmt: skip
    Course.objects.filter(dialog=dialog, number=1).update(head_run=second, guard_held=True)
    for before, after in ((None, first), (first, second)):
        ViewChange.objects.create(course=first.course, before=before, after=after, why="applied")
    a_run_at(dialog, 13, status="failed", trigger="manual", code="BREAKER_FAILED", reason="It does not fit.")
    undone = a_run_at(dialog, 14, status="undone", trigger="reset", view=[{"message": ids[13]}, {"message": ids[14]}])
    ViewChange.objects.create(course=undone.course, before=undone, after=None, why="undone")
    generation.manifest |= {"view": undone.pk, "estimated": 321}
    generation.save()


def full_facts(ids: dict[int, int]) -> dict[str, Any]:
    """Something in every column that a file takes along, but for those of a failure."""
    return {
        "focus": "the cat",
        "up_to_seq": 4,
        "chain": ["trim_payloads", "summarize_old"],
        "reserve_tokens": 100,
        "limit_trace": [{"what": "limit", "tokens": 5000, "source": "default"}],
        "steps": [a_step("summarize_old", 4500, 1500, note="older than the last four")],
        "tokens_now": 1500,
        "priority": 1,
        "priority_area": "To Do List",
        "estimated_before": 4500,
        "estimated_after": 1500,
        "messages_before": 3,
        "messages_after": 2,
        "counter": "cl100k",
        "grade": "exact",
        "embedder": "static",
        "coherence": 0.75,
        "reward": 1.25,
        "coverage": [
            {"message": str(ids[2]), "extent": "in full", "read": 10, "total": 10},
            {"message": "", "extent": "in part", "read": 3, "total": 10},
        ],
        "losses": [{"text": "¡hola!", "kind": "identifier", "message": str(ids[3]), "kept": True}],
        "ledger": [{"text": "Look inside.", "kind": "rule"}],
        "warnings": ["The vectors were static."],
        "started_at": AGO,
        "finished_at": AGO,
    }
