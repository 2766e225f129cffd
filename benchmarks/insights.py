"""How long the Insights page takes with 100,000 events, 10,000 compactions and 20,000 readings: `python -m
benchmarks.insights [COUNT]`, where COUNT are the events.

The world of `benchmarks.events`: two hundred agents, forty people, a month; `python -m tests.postgres` before it
measures on PostgreSQL. CPU is this process's own: on a machine that others use too it says more than the clock.
"""

from __future__ import annotations

import random
import sys
from datetime import timedelta

from benchmarks import events

RUNS, READINGS = 10_000, 20_000
PAGES = {
    "30 days, of one who has 2.5 %": ("few", ""),
    "30 days, of one who has half": ("many", ""),
    "24 hours, of one who has half": ("many", "?days=1"),
    "all time, of one who has half": ("many", "?days="),
    "one agent, all time": ("many", "?agent=2&days="),
    "everybody's, 30 days": ("staff", "?all=1"),
    "everybody's, all time": ("staff", "?all=1&days="),
}
# The page's chart comes after its numbers, by a request of its own.
CHARTS = {
    "chart, all time, of one who has half": ("many", "?agent=2&llm=1&days="),
    "chart of everybody's, 30 days": ("staff", "?agent=2&llm=1&all=1"),
    "chart of everybody's, all time": ("staff", "?agent=2&llm=1&all=1&days="),
}


def compacted_and_measured() -> None:
    """Spread over the dialogs and the month that the events have."""
    from django.utils import timezone

    from dialogs.models import Course, Dialog, Generation, Message
    from health.models import CompactionRun, HealthReading

    chance, now, month = random.Random(8), timezone.now(), timedelta(days=30)
    dialogs = list(Dialog.objects.all())
    courses = Course.objects.bulk_create(Course(dialog=dialog, number=1) for dialog in dialogs)
    leaves = Message.objects.bulk_create(
        Message(dialog=dialog, course=course, seq=1, turn=1, role="user", origin="typed", content="Hello")
        for dialog, course in zip(dialogs, courses, strict=True)
    )
    queued_at, read_at = CompactionRun._meta.get_field("queued_at"), HealthReading._meta.get_field("read_at")
    queued_at.auto_now_add = read_at.auto_now_add = False  # so that it happened when we say
    view = [{"message_id": number, "content": "words " * 25, "kind": "", "covers": []} for number in range(40)]
    runs = []
    for at in range(RUNS):
        leaf = leaves[at % len(leaves)]
        ended = now - month * (RUNS - at) / RUNS
        steps = [
            {"phase": phase, "estimated_before": 4700, "estimated_after": 3300, "changed": True, "note": "", "ms": 12.5}
            for phase in ("detection", "trim_payloads", "summarize_old", "content_type_chunking", "success")
        ]
        times = {"queued_at": ended, "finished_at": ended, "started_at": ended - timedelta(seconds=chance.random() * 3)}
        runs.append(
            CompactionRun(
                dialog_id=leaf.dialog_id, course_id=leaf.course_id, leaf=leaf, turn=1, through_seq=1, limit_tokens=5000,
                status=chance.choice(("applied", "applied", "skipped", "failed")), trigger="pre_request", steps=steps,
                reward=chance.uniform(-1, 2), coherence=chance.random(), estimated_before=4700, estimated_after=3300,
                view=view, **times,
            )
        )  # fmt: skip
    CompactionRun.objects.bulk_create(runs, batch_size=500)
    llm = dialogs[0].llm
    generations = Generation.objects.bulk_create(
        (
            Generation(
                dialog_id=leaf.dialog_id, course_id=leaf.course_id, number=1 + at // len(leaves), turn=1, llm=llm,
                llm_name="none/small", prompt_leaf=leaf, fencing_token=1, status="finished",
            )
            for at, leaf in ((at, leaves[at % len(leaves)]) for at in range(READINGS))
        ),
        batch_size=2_000,
    )  # fmt: skip
    HealthReading.objects.bulk_create(
        (
            HealthReading(
                generation=one,
                level="healthy",
                prompt_tokens=chance.randint(500, 8_000),
                read_at=now - month * (READINGS - at) / READINGS,
            )
            for at, one in enumerate(generations)
        ),
        batch_size=2_000,
    )


if __name__ == "__main__":
    events.prepare()
    found = events.fill(int(sys.argv[1]) if len(sys.argv) > 1 else events.EVENTS)
    compacted_and_measured()
    events.measure(found, "/insights/", PAGES)
    events.measure(found, "/insights/chart/", CHARTS)
