"""`manage.py context_stats DIALOG`: a dialog's context as lines or JSON. Estimates are marked with `≈`."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.core.serializers.json import DjangoJSONEncoder

from dialogs.compaction.reads.context_state import context_state
from dialogs.context.reads import context_stats, snapshot_for_programs
from dialogs.llms.counter import counter_of
from dialogs.models import Dialog, Message
from dialogs.transcript.reads.archived_messages import archived_ids
from health.compaction.snapshot import as_json

Report = Mapping[str, Any]
SHOWN_RUNS = 10


class Command(BaseCommand):
    help = "Show how full a dialog's context is: estimated and measured, its limit, its task, its compactions."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("dialog", help="Its id, as in the address of its page.")
        parser.add_argument("--json", action="store_true", help="For programs.")

    def handle(self, *args: Any, **options: Any) -> None:
        report = report_of(_dialog(options["dialog"]))
        if options["json"]:
            self.stdout.write(json.dumps(report, indent=1, ensure_ascii=False, cls=DjangoJSONEncoder))
        else:
            self.stdout.write("\n".join(lines(report)))


def _dialog(named: str) -> Dialog:
    try:
        return Dialog.objects.select_related("agent", "llm__provider", "current_leaf__course").get(pk=named)
    except (Dialog.DoesNotExist, ValidationError) as error:
        raise CommandError(f"There is no dialog {named!r}.") from error


def report_of(dialog: Dialog) -> dict[str, Any]:
    """`dialog` with its agent, LLM and provider."""
    task = snapshot_for_programs(dialog)
    return {
        "dialog": str(dialog.pk),
        "title": str(dialog),
        "agent": dialog.agent.slug,
        "llm": dialog.llm.slug,
        "sent": context_stats(dialog).message_count,
        "task": as_json(task) if task else None,
        **asdict(context_state(dialog)),
        "archive": _archive(dialog),
    }


def _archive(dialog: Dialog) -> dict[str, int]:
    """The messages that the model no longer sees as they were."""
    texts = list(Message.objects.filter(pk__in=archived_ids(dialog.pk)).values_list("content", flat=True))
    return {"messages": len(texts), "estimated_tokens": sum(counter_of(dialog.llm).count(texts)) if texts else 0}


def lines(report: Report) -> Iterator[str]:
    yield f"{report['title']}, with {report['agent']} ({report['llm']})"
    yield f"Messages: {report['messages']:,} stored, {report['sent']:,} would be sent."
    yield f"Measured: {_measured(report['health'])}"
    yield from _estimated(report["budget"])
    yield from _task(report["task"])
    yield from _compactions(report["compactions"])
    archive = report["archive"]
    yield f"Archive: {archive['messages']:,} messages, ≈{archive['estimated_tokens']:,} tokens."


def _measured(health: Report | None) -> str:
    if health is None:
        return "nothing yet."
    if health["prompt_tokens"] is None:
        return f"unknown ({health['reason']})."
    window = f" of {health['context_window']:,}" if health["context_window"] else ""
    stale = f" ({health['stale']})" if health["stale"] else ""
    return f"{health['prompt_tokens']:,}{window} prompt tokens, {health['level']}{stale}."


def _estimated(budget: Report) -> Iterator[str]:
    limit = f" of {budget['limit']:,}" if budget["limit"] else ""
    pressure = f", pressure {budget['pressure']}" if budget["pressure"] else ", nobody guards it"
    yield f"Estimated: ≈{budget['tokens']:,}{limit} tokens{pressure} ({budget['counter']}, {budget['grade']})."
    for name, tokens in budget["parts"].items():
        yield f"  {name.replace('_', ' '):<14} ≈{tokens:,}"
    if budget["reserve"]:
        yield f"  {'for the answer':<14} {budget['reserve']:,}"
    for term in budget["trace"]:
        yield f"Limit: {term['tokens']:,} by {term['what']} ({term['source']})."


def _task(task: Report | None) -> Iterator[str]:
    if task is None:
        yield "Task: none has begun."
        return
    actions = task["completedActions"]
    yield f"Task: {' '.join(task['goal'].split())}"
    yield f"  {task['currentPhase']}, {task['earlierActions'] + len(actions):,} actions"
    if actions:
        yield f"  newest: {', '.join(actions)}"
    yield from (f"  seen: {observation}" for observation in task["keyObservations"])


def _compactions(runs: list[Report]) -> Iterator[str]:
    yield f"Compactions: {len(runs):,}"
    for run in runs[-SHOWN_RUNS:]:
        sizes = f"{_about(run['estimated_before'])} → {_about(run['estimated_after'])}"
        yield f"  {run['queued_at']:%Y-%m-%d %H:%M}  {run['trigger']}  {run['status']}  {sizes}  {run['code']}".rstrip()


def _about(tokens: int | None) -> str:
    return "?" if tokens is None else f"≈{tokens:,}"
