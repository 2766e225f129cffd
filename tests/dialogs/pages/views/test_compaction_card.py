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


FREED = {"estimated_before": 6_000, "estimated_after": 2_500}


@pytest.mark.parametrize(
    ("fields", "said", "is_said"),
    [
        ({}, '{archive}">View Full Archive<', True),
        ({"removed": [{"id": 1}, {"id": 2}, {"id": 3}]}, "<dt>Discarded</dt><dd>3 messages</dd>", True),
        (FREED, "<dt>Freed</dt><dd>≈3,500 · the server reads at most ≈2,500 anew, once</dd>", True),
        (FREED | {"status": "undone"}, "Freed", False),
        ({}, 'data-hides-after="3"', True),
        ({"status": "failed"}, 'data-hides-after="3"', False),
    ],
    ids=[
        "the-archive",
        "discarded",
        "freed-and-read-again",
        "undone-freed-nothing",
        "a-success-goes",
        "a-failure-stays",
    ],
)
def test_a_card_says(dialog: Dialog, fields: dict[str, Any], said: str, is_said: bool) -> None:
    an_applied_run(dialog, **fields)

    there = reverse("dialog_archive_search", args=[dialog.pk])
    assert (said.format(archive=f'href="{there}') in shown(dialog)) is is_said
