"""`manage.py context_stats DIALOG`: how full a dialog's context is and what became of it, in a terminal."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.core.serializers.json import DjangoJSONEncoder

from dialogs.compaction.context_report import lines, report
from dialogs.models import Dialog


class Command(BaseCommand):
    help = "Show how full a dialog's context is: estimated and measured, its limit, its task, its compactions."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("dialog", help="Its id, as in the address of its page.")
        parser.add_argument("--json", action="store_true", help="For programs.")

    def handle(self, *args: Any, **options: Any) -> None:
        told = report(_dialog(options["dialog"]))
        if options["json"]:
            self.stdout.write(json.dumps(told, indent=1, ensure_ascii=False, cls=DjangoJSONEncoder))
        else:
            self.stdout.write("\n".join(lines(told)))


def _dialog(named: str) -> Dialog:
    try:
        return Dialog.objects.select_related("agent", "llm__provider", "current_leaf__course").get(pk=named)
    except (Dialog.DoesNotExist, ValidationError) as error:
        raise CommandError(f"There is no dialog {named!r}.") from error
