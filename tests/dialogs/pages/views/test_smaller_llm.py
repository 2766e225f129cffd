"""Changing to an LLM with less room: what does not fit is said first, and compacting for it offered."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client

from dialogs.compaction.work import perform
from dialogs.compaction.writes.compaction import cancel_run
from dialogs.models import LLM, Dialog
from health.models import CompactionRun
from tests.dialogs.compacting_builders import RULE, a_history, guard
from tests.dialogs.pages.views.pages import Page


@pytest.fixture
def small(dialog: Dialog) -> LLM:
    """Room for a part of what the dialog has; its own LLM has plenty."""
    guard(dialog, limit=90_000)
    a_history(dialog, pairs=24)
    dialog.refresh_from_db()
    return LLM.objects.create(provider=dialog.llm.provider, model_id="small", context_length=4096)


def change(client: Client, dialog: Dialog, llm: LLM, **fields: str) -> Page:
    response = client.post(f"/dialogs/{dialog.pk}/llm/", {"llm": llm.pk, **fields}, follow=True)
    dialog.refresh_from_db()
    return Page(response.content.decode())


def test_what_does_not_fit_is_said_before_anything_is_changed(as_alice: Client, dialog: Dialog, small: LLM) -> None:
    said = " ".join(change(as_alice, dialog, small).text.split())

    assert re.search(r"has room for 3,687 tokens\. The model sees ≈[\d,]+ now: ≈[\d,]+ too many\.", said)
    assert "Compact first, then change" in said
    assert dialog.llm_id != small.pk


def test_it_is_compacted_by_the_old_one_and_changed_then(as_alice: Client, dialog: Dialog, small: LLM) -> None:
    old = dialog.llm_id
    change(as_alice, dialog, small, how="compact")
    assert dialog.llm_id == old

    run = CompactionRun.objects.get()
    perform(run.pk, embedder="static")

    run.refresh_from_db()
    dialog.refresh_from_db()
    assert (run.status, run.limit_tokens) == ("applied", 3687)
    assert (run.estimated_after or 0) <= 0.8 * 3687
    assert (dialog.llm, dialog.llm_after) == (small, None)
    assert RULE in str(run.view) or RULE in str(run.ledger)


def test_a_compaction_that_is_cancelled_changes_nothing(
    as_alice: Client, alice: User, dialog: Dialog, small: LLM
) -> None:
    old = dialog.llm_id
    change(as_alice, dialog, small, how="compact")

    cancel_run(dialog=dialog, run_id=CompactionRun.objects.get().pk)

    dialog.refresh_from_db()
    assert (dialog.llm_id, dialog.llm_after) == (old, None)


def test_who_changes_now_is_not_asked_again(as_alice: Client, dialog: Dialog, small: LLM) -> None:
    change(as_alice, dialog, small, how="now")

    assert dialog.llm == small
    assert not CompactionRun.objects.exists()


def test_a_larger_one_is_taken_at_once(as_alice: Client, dialog: Dialog, small: LLM) -> None:
    LLM.objects.filter(pk=small.pk).update(context_length=200_000)

    change(as_alice, dialog, small)

    assert dialog.llm == small


def test_where_compaction_is_off_it_is_said_what_comes_of_it(as_alice: Client, dialog: Dialog, small: LLM) -> None:
    Dialog.objects.update(compaction="off")

    assert "its first answer will be refused" in change(as_alice, dialog, small).text
