"""`manage.py backup`: one archive of everything that Dominds stores. The work is in `dominds.backups`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from dominds import backups


class Command(BaseCommand):
    help = "Writes the database and the secret key to one archive; Dominds may be running."
    # Some checks query the database, which may be broken.
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", nargs="?", type=Path, help="default: a new file in the data folder's `backups`")

    def handle(self, *, file: Path | None, **options: Any) -> None:
        target = file or backups.stamped("dominds-{time}.tar.gz")
        try:
            backups.make_backup(target)
        except backups.BackupError as error:
            raise CommandError(str(error)) from error
        size = target.stat().st_size / 1e6
        self.stdout.write(f"Wrote {target} ({size:.1f} MB). It holds the secret key: keep it as safe as a password.")
