"""`manage.py load_catalogue`: update providers and LLMs from the catalogue files. `up` does this too."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from dialogs.llms.writes.catalogue import CatalogueError, load_catalogue


class Command(BaseCommand):
    help = "Load the built-in catalogue and the override file. What an admin has edited stays."

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            report = load_catalogue()
        except CatalogueError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Catalogue: {report}.")
