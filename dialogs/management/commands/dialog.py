"""`manage.py dialog`: export and import dialogs as files, and empty the trash, from a terminal."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from dialogs.common.errors import DialogError
from dialogs.models import Agent, Dialog
from dialogs.transcript.writes.dialog_row import empty_trash
from dialogs.transfer import export_json, export_markdown, import_dialog, parse_json


class Command(BaseCommand):
    help = "Export or import a dialog, or erase what has been in the trash for long."

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        export = actions.add_parser("export", help="Print a dialog, or write it to a file.")
        export.add_argument("dialog", help="Its id, as in the address of its page.")
        export.add_argument("--markdown", action="store_true", help="For people: the current branch only.")
        export.add_argument("--output", type=Path, help="The file to write. It must not exist yet.")
        bring = actions.add_parser("import", help="Add a dialog from a JSON file.")
        bring.add_argument("file", help="A file made by `dialog export`, or - for standard input.")
        bring.add_argument("--owner", required=True, help="The user name of the person whose dialog it becomes.")
        bring.add_argument("--agent", help="Slug of the agent to use when the file's agent is not here.")
        empty = actions.add_parser("empty-trash", help="Erase dialogs that were deleted long ago, for good.")
        empty.add_argument("--days", type=float, default=settings.DOMINDS_TRASH_DAYS, help="Default: %(default)s.")

    def handle(self, *args: Any, **options: Any) -> None:
        actions = {"export": self._export, "import": self._import, "empty-trash": self._empty_trash}
        try:
            actions[options["action"]](options)
        except (DialogError, OSError) as error:
            raise CommandError(str(error)) from error

    def _export(self, options: dict[str, Any]) -> None:
        dialog = _dialog(options["dialog"])
        text = export_markdown(dialog) if options["markdown"] else json.dumps(export_json(dialog), indent=1) + "\n"
        if options["output"] is None:
            self.stdout.write(text, ending="")
            return
        with options["output"].open("x", encoding="utf-8") as file:
            try:
                file.write(text)
                file.flush()
            except OSError:
                # A half-written file would look complete, and block the next try.
                options["output"].unlink()
                raise
        self.stdout.write(f"Wrote {options['output']}.")

    def _import(self, options: dict[str, Any]) -> None:
        raw = sys.stdin.buffer.read() if options["file"] == "-" else Path(options["file"]).read_bytes()
        owner = _one(User, username=options["owner"])
        agent = _one(Agent, slug=options["agent"]) if options["agent"] else None
        dialog = import_dialog(owner=owner, data=parse_json(raw), agent=agent)
        self.stdout.write(f"Imported “{dialog}” as {dialog.pk}. It speaks to {dialog.agent} ({dialog.llm.slug}).")

    def _empty_trash(self, options: dict[str, Any]) -> None:
        erased = empty_trash(older_than_days=options["days"])
        self.stdout.write(f"Erased {erased} dialogs.")


def _dialog(dialog_id: str) -> Dialog:
    try:
        return Dialog.objects.select_related("agent", "llm__provider").get(pk=dialog_id)
    except (Dialog.DoesNotExist, ValidationError) as error:
        raise CommandError(f"There is no dialog {dialog_id}.") from error


def _one(table: Any, **key: str) -> Any:
    found = table.objects.filter(**key).first()
    if found is None:
        raise CommandError(f"There is no {table._meta.verbose_name} “{next(iter(key.values()))}”.")
    return found
