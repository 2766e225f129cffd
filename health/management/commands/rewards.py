"""`manage.py rewards export`: the log of rewards as JSONL on standard output. Each export is noted in the audit
trail."""

from __future__ import annotations

import json
from argparse import ArgumentParser, ArgumentTypeError
from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from health.reward_log import rows
from health.services import record_reward_export


class Command(BaseCommand):
    help = "Print what compactions were worth, as JSONL: numbers and names, never what was said."

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        export = actions.add_parser("export", help="Print the log, the oldest line first.")
        export.add_argument("--since", type=moment, metavar="DATE", help="Runs that ended since, such as 2026-11-30.")
        export.add_argument("--llm", default="", metavar="PROVIDER/MODEL", help="Runs with this LLM only.")

    def handle(self, *, since: datetime | None, llm: str, **options: Any) -> None:
        found = list(rows(since=since, llm=llm))
        record_reward_export(lines=len(found), by=None)
        for row in found:
            self.stdout.write(json.dumps(row, ensure_ascii=False))


def moment(text: str) -> datetime:
    """A date without a zone is in this installation's time zone."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise ArgumentTypeError(f"{text!r} is no date such as 2026-11-30.") from error
    return found if found.tzinfo else timezone.make_aware(found)
