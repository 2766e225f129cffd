"""The admin's list of generations: numbers of calls to providers."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from dialogs.models import Dialog, Generation
from dialogs.turns.writes.messages import post_message
from tests.builders import a_generation


@pytest.mark.parametrize(("seconds", "shown"), [(90, "90.0"), (0, "0.0"), (-3600, "—"), (None, "—")])
def test_how_long_a_call_took_is_unknown_while_it_runs_and_where_the_clock_was_set_back(
    staff: Client, dialog: Dialog, seconds: int | None, shown: str
) -> None:
    post_message(dialog=dialog, content="Hello")
    dialog.refresh_from_db()
    made, now = a_generation(dialog), timezone.now()
    finished = None if seconds is None else now + timedelta(seconds=seconds)
    Generation.objects.filter(pk=made.pk).update(started_at=now, finished_at=finished)

    page = staff.get("/admin/dialogs/generation/").content.decode()

    assert f'<td class="field-took">{shown}</td>' in page
