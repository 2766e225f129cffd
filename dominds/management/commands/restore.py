"""`manage.py restore FILE`: replace database and secret key by a backup's. The work is in `dominds.backups`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from dominds import backups
from dominds.supervisor import lock
from dominds.supervisor.lock import CannotStart


class Command(BaseCommand):
    help = "Replaces the database and the secret key by a backup's; what was there is kept aside."
    # Some checks query the database, which may be broken.
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--yes", action="store_true", help="do not ask")

    def handle(self, *, file: Path, yes: bool, **options: Any) -> None:
        try:
            with (
                lock.sole_user(settings.DOMINDS_DATA_DIR, purpose="restoring a backup"),
                lock.database_to_oneself(),
            ):
                manifest = backups.read_manifest(file)
                if not yes:
                    self.confirm(manifest)
                aside = backups.restore_backup(file)
        except (backups.BackupError, CannotStart) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Restored {file}. What it replaced is kept in {aside}.")
        self.say_about_key()

    def confirm(self, manifest: backups.Manifest) -> None:
        self.stdout.write(
            f"This replaces everything in {settings.DOMINDS_DATA_DIR} by the {manifest.engine} database "
            f"that Dominds {manifest.version} saved on {manifest.made_at[:16].replace('T', ' ')} UTC."
        )
        try:
            answer = input("Type yes to go on: ")
        except EOFError:
            raise CommandError("Nobody can be asked here, so nothing was changed. --yes goes on without.") from None
        if answer.strip() != "yes":
            raise CommandError("Nothing was changed.")

    def say_about_key(self) -> None:
        kept = (settings.DOMINDS_DATA_DIR / backups.SECRET_KEY).read_text()
        if os.environ.get("DOMINDS_SECRET_KEY", kept) != kept:
            self.stderr.write(
                "DOMINDS_SECRET_KEY differs from the backup's key, so stored provider keys cannot be read. "
                f"Set it to the content of {settings.DOMINDS_DATA_DIR / backups.SECRET_KEY}."
            )
