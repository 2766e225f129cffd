"""`manage.py context_config`: export and import the compaction settings as YAML."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from dialogs.compaction.reads.context_settings import exported
from dialogs.compaction.settings.checking import Problem, read_yaml
from dialogs.compaction.writes.context_settings import save_settings
from health.configured import context_settings


class Command(BaseCommand):
    help = "Export the compaction settings as YAML, or put those of a file into force."

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        export = actions.add_parser("export", help="Print the settings, or write them to a file.")
        export.add_argument("file", nargs="?", type=Path, help="The file to write. It must not exist yet.")
        bring = actions.add_parser("import", help="Put a file's settings into force, and say what changed.")
        bring.add_argument("file", help="A YAML file, or - for standard input.")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            (self._export if options["action"] == "export" else self._import)(options["file"])
        except OSError as error:
            raise CommandError(str(error)) from error

    def _export(self, file: Path | None) -> None:
        text = exported()
        if file is None:
            self.stdout.write(text, ending="")
            return
        with file.open("x", encoding="utf-8") as opened:
            opened.write(text)
        self.stdout.write(f"Wrote {file}.")

    def _import(self, file: str) -> None:
        found = read_yaml(sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes())
        if isinstance(found, list):
            raise CommandError("\n".join(f"{file}{_at(problem)}: {problem.words}" for problem in found))
        row = context_settings()
        changed = save_settings(
            config=found.config,
            pruning_agent=row.pruning_agent,
            by=None,
            version=row.version,
            own=found.agents,
            when_full=found.when_full,
        )
        for change in changed:
            self.stdout.write(f"{change.key}: {change.before or '—'} → {change.after or '—'}")
        self.stdout.write(f"{len(changed)} changed.")


def _at(problem: Problem) -> str:
    """Line and key, in the form of a compiler's message."""
    return (f":{problem.line}" if problem.line else "") + (f": {problem.path}" if problem.path else "")
