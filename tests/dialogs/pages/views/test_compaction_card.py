"""What the page shows of a compaction's card: each of its signs is in the markup, and what its fold says."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.template.loader import render_to_string
from django.urls import reverse

from dialogs.compaction.reads.compaction_card import compaction_card
from dialogs.models import CompactionDisplay, Dialog
from tests.dialogs.compaction_runs import a_run, an_applied_run


def shown(dialog: Dialog) -> str:
    return render_to_string("dialogs/_compaction_card.html", {"card": compaction_card(dialog), "dialog": dialog})


@pytest.mark.parametrize(
    ("phase", "pulses", "spins"), [("summarize_old", True, False), ("hybrid", True, False), ("detection", False, True)]
)
def test_a_bar_pulses_while_a_summary_is_made_and_the_sign_of_a_look_spins(
    dialog: Dialog, phase: str, pulses: bool, spins: bool
) -> None:
    a_run(dialog, phase=phase)

    page = shown(dialog)

    assert ("compaction-pulses" in page, "compaction-spins" in page) == (pulses, spins)


def test_a_card_leads_to_the_full_archive(dialog: Dialog) -> None:
    an_applied_run(dialog)

    assert f'href="{reverse("dialog_archive_search", args=[dialog.pk])}">View Full Archive<' in shown(dialog)


def test_the_fold_says_how_many_messages_were_discarded(dialog: Dialog) -> None:
    an_applied_run(dialog, removed=[{"id": 1}, {"id": 2}, {"id": 3}])

    assert "<dt>Discarded</dt><dd>3 messages</dd>" in shown(dialog)


def test_the_fold_sets_what_was_freed_against_what_the_server_must_read_again(dialog: Dialog) -> None:
    an_applied_run(dialog, estimated_before=6_000, estimated_after=2_500)

    assert "<dt>Freed</dt><dd>≈3,500 · the server reads at most ≈2,500 anew, once</dd>" in shown(dialog)


def test_the_fold_says_nothing_of_what_an_undone_compaction_freed(dialog: Dialog) -> None:
    an_applied_run(dialog, estimated_before=6_000, estimated_after=2_500, status="undone")

    assert "Freed" not in shown(dialog)


@pytest.mark.parametrize(
    ("detail", "fold", "is_open"), [("minimal", False, False), ("normal", True, False), ("detailed", True, True)]
)
def test_a_persons_detail_decides_whether_there_is_a_fold_and_whether_it_is_open(
    alice: User, dialog: Dialog, detail: str, fold: bool, is_open: bool
) -> None:
    CompactionDisplay.objects.create(user=alice, detail=detail)
    an_applied_run(dialog)

    page = shown(dialog)

    assert ('id="compaction-details"' in page, 'id="compaction-details" open' in page) == (fold, is_open)


@pytest.mark.parametrize(("fields", "goes"), [({"status": "applied"}, True), ({"status": "failed"}, False)])
def test_only_a_success_says_after_how_long_it_goes(dialog: Dialog, fields: dict[str, Any], goes: bool) -> None:
    a_run(dialog, estimated_after=3420, **fields)

    assert ('data-hides-after="3"' in shown(dialog)) is goes
