"""Dominds inside a benchmark's own process: a data folder, a database and a Valkey of its own, and no workers.

Import this first: Django reads its settings from what is set here.
"""

from __future__ import annotations

import os

import tests.environment  # noqa: F401  # sets the data folder and starts Valkey


def prepare() -> None:
    """Create the tables; after this, models can be imported."""
    # No worker runs beside: whoever waits for a compaction does it, at once.
    settings = {"DJANGO_SETTINGS_MODULE": "dominds.settings", "DOMINDS_COMPACTION_WAIT_SECONDS": "0.001"}
    os.environ.update(settings | {"DOMINDS_LOG_LEVEL": "ERROR", "DOMINDS_LEASE_SECONDS": "30"})
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
