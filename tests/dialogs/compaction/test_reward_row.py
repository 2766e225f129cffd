"""Runs in the log of rewards: when they are written there, with what, and that no word of the dialog goes along."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from dialogs.compaction.work import perform
from dialogs.compaction.writes.compaction import queue_run
from dialogs.compaction.writes.context_settings import save_settings
from dialogs.llms.guard import by_limit
from dialogs.models import Dialog
from dialogs.transcript.writes.dialog_row import lock
from dialogs.transcript.writes.trash import erase_dialog
from health import rewards
from health.compaction.accounts import reward
from health.compaction.config import ContextConfig, RewardLog
from health.compaction.terms.outcome import BreakingOutcome
from health.models import CompactionRun
from tests.dialogs.compacting_builders import a_history, guard

pytestmark = pytest.mark.django_db(transaction=True)
SEVEN = {
    "success": "success",
    "usedRecovery": "used_recovery",
    "coherenceDelta": "coherence_delta",
    "tokensReduced": "tokens_reduced",
    "timeMs": "time_ms",
    "priorityPreserved": "priority_preserved",
    "originalTokens": "original_tokens",
}


@pytest.fixture(autouse=True)
def folder(settings: Any, tmp_path: Path) -> None:
    settings.DOMINDS_DATA_DIR = tmp_path


@pytest.fixture
def logged(sam: User) -> None:
    """Sam has switched the log on."""
    config = replace(ContextConfig(), reward_log=RewardLog.ON)
    save_settings(config=config, pruning_agent=None, by=sam, version=1)


def a_compaction(dialog: Dialog) -> CompactionRun:
    guard(dialog)
    a_history(dialog, pairs=16)
    with transaction.atomic():
        run = queue_run(lock(dialog), guard=by_limit(dialog), trigger="pre_request")
    assert perform(run.pk, embedder="static")
    run.refresh_from_db()
    return run


def test_nothing_is_logged_before_somebody_switches_it_on(dialog: Dialog) -> None:
    run = a_compaction(dialog)

    assert run.reward is not None
    assert list(rewards.rows()) == []


def test_a_run_is_logged_with_the_seven_fields_that_its_reward_is_made_of(dialog: Dialog, logged: None) -> None:
    run = a_compaction(dialog)

    (row,) = rewards.rows()

    fields = row["stateAfter"]["outcome"]
    assert row["reward"] == run.reward
    assert reward(BreakingOutcome(**{SEVEN[name]: value for name, value in fields.items()})) == row["reward"]
    assert row["stateBefore"]["estimatedTokens"] == run.estimated_before
    assert row["stateAfter"]["estimatedTokens"] == run.estimated_after
    assert row["action"]["chain"] == run.chain


def test_a_later_run_earns_what_it_took_from_the_view_and_not_from_all_that_was_ever_said(
    dialog: Dialog, logged: None
) -> None:
    a_compaction(dialog)
    again = a_compaction(dialog)

    *_, row = rewards.rows()

    fields = row["stateAfter"]["outcome"]
    assert again.status == CompactionRun.Status.APPLIED
    assert fields["originalTokens"] == again.estimated_before
    assert again.estimated_before is not None
    assert again.estimated_after is not None
    assert fields["tokensReduced"] == again.estimated_before - again.estimated_after
    assert row["reward"] == again.reward == reward(BreakingOutcome(**{SEVEN[name]: fields[name] for name in fields}))


def test_no_word_of_the_dialog_stands_there(dialog: Dialog, logged: None) -> None:
    a_compaction(dialog)

    (row,) = rewards.rows()

    text = json.dumps(row)
    assert str(dialog.pk) not in text
    assert [word for word in ("Friday", "srv", "Question", "Answer", "pump", "turbine") if word in text] == []


def test_erasing_the_dialog_erases_its_lines(dialog: Dialog, logged: None) -> None:
    a_compaction(dialog)
    dialog.refresh_from_db()
    dialog.trashed_at = timezone.now()
    dialog.save()

    erase_dialog(dialog=dialog)

    assert list(rewards.rows()) == []


def test_a_log_that_cannot_be_written_fails_no_run(dialog: Dialog, logged: None, settings: Any, tmp_path: Path) -> None:
    settings.DOMINDS_DATA_DIR = tmp_path / "away"

    assert a_compaction(dialog).status == "applied"
