"""`manage.py doctor`: one line for each thing that must be right. A door to `dominds.doctor`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from dominds.doctor import Finding, State, examine


class Command(BaseCommand):
    help = "Says what is well and what is not; the exit status is 1 when something is wrong."
    # The doctor must speak even when the checks would stop other commands.
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", dest="as_json", help="print a JSON array")

    def handle(self, *, as_json: bool, **options: Any) -> None:
        findings = list(examine()) if as_json else self.speak(examine())
        if as_json:
            self.stdout.write(json.dumps([asdict(finding) for finding in findings], indent=2, ensure_ascii=False))
        if any(finding.state == State.WRONG for finding in findings):
            sys.exit(1)

    def speak(self, findings: Iterable[Finding]) -> list[Finding]:
        styles = {State.OK: self.style.SUCCESS, State.NOTE: self.style.WARNING, State.WRONG: self.style.ERROR}
        said = []
        for finding in findings:
            self.stdout.write(f"{styles[finding.state](f'{finding.state:<6}')} {finding.name}: {finding.text}")
            if finding.fix:
                self.stdout.write(f"       fix: {finding.fix}")
            said.append(finding)
        return said
