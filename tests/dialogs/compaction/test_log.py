"""What the server's log tells of a compaction: enough to follow it, and nothing of what was said."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from dialogs.compaction.log import log_end
from dialogs.compaction.work import perform
from dialogs.compaction.writes.compaction import queue_run
from dialogs.compaction.writes.context_settings import save_settings
from dialogs.compaction.writes.manual_compaction import request
from dialogs.llms.guard import by_limit
from dialogs.models import LLM, Dialog
from dialogs.transcript.writes.dialog_row import erase_dialog, lock
from dialogs.turns.reads.turns import dialog_to_drive
from health import reward_log
from health.compaction.config import ContextConfig, RewardLog
from health.compaction.reward import reward
from health.compaction.terms.outcome import BreakingOutcome
from health.models import CompactionRun
from tests.builders import an_answer
from tests.dialogs.compacting_builders import RULE, TOPICS, a_history, guard
from tests.dialogs.compaction_runs import a_run, a_step

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
def told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="dialogs")


def lines(caplog: pytest.LogCaptureFixture, beginning: str = "") -> list[str]:
    return [record.getMessage() for record in caplog.records if record.getMessage().startswith(beginning)]


def test_a_run_is_told_when_it_begins_and_when_it_ends(dialog: Dialog, caplog: pytest.LogCaptureFixture) -> None:
    a_history(dialog, pairs=12)
    guard(dialog)
    row = dialog_to_drive(dialog.pk)
    run = queue_run(row, guard=by_limit(row), trigger="pre_request")

    perform(run.pk, embedder="static")

    run.refresh_from_db()
    [begun], [ended] = lines(caplog, "Compaction begins:"), lines(caplog, "Compaction ended:")
    which = f"dialog={dialog.pk} run={run.pk} trigger=pre_request attempt=1/3 limit={run.limit_tokens}"
    assert begun == f"Compaction begins: {which} before=≈{run.estimated_before}"
    assert f"{which} before=≈{run.estimated_before} after=≈{run.estimated_after} status={run.status}" in ended
    for step in run.steps:
        assert f"{step['phase']}:≈{step['estimated_before']}→≈{step['estimated_after']}:{step['ms']:.0f}ms" in ended


def test_no_word_of_the_dialog_is_logged(dialog: Dialog, alice: User, caplog: pytest.LogCaptureFixture) -> None:
    a_history(dialog, pairs=12)
    run = request(dialog=dialog, by=alice, focus="the secret boiler")

    perform(run.pk, embedder="static")

    assert len(lines(caplog, "Compaction ended:")) == 1
    assert not [word for word in (*TOPICS, "secret", "Reading", RULE[:12]) if word in caplog.text]


def test_each_attempt_of_a_turn_has_its_number(dialog: Dialog, caplog: pytest.LogCaptureFixture) -> None:
    runs = [a_run(dialog, status="failed") for _ in range(3)]

    for run in runs:
        log_end(run, dialog.llm)

    told = [line.split("attempt=")[1][:3] for line in lines(caplog, "Compaction ended:")]
    assert told == ["1/3", "2/3", "3/3"]


def test_the_next_request_of_a_turn_begins_with_its_first_attempt(
    dialog: Dialog, caplog: pytest.LogCaptureFixture
) -> None:
    earlier = a_run(dialog, status="applied")
    an_answer(dialog, "I read on.")

    log_end(a_run(dialog, status="applied"), dialog.llm)

    assert earlier.turn == CompactionRun.objects.latest("pk").turn
    assert "attempt=1/3" in lines(caplog, "Compaction ended:")[0]


def test_what_a_person_asked_for_is_no_attempt(dialog: Dialog, caplog: pytest.LogCaptureFixture) -> None:
    log_end(a_run(dialog, trigger="manual", status="applied"), dialog.llm)

    assert "attempt" not in caplog.text


def test_a_failure_is_a_warning_with_its_cause(dialog: Dialog, caplog: pytest.LogCaptureFixture) -> None:
    log_end(
        a_run(dialog, status="failed", code="BREAKER_FAILED", reason="What must stay needs 6,000 tokens."), dialog.llm
    )

    [record] = caplog.records
    assert record.levelno == logging.WARNING
    assert 'status=failed code=BREAKER_FAILED reason="What must stay needs 6,000 tokens."' in record.getMessage()


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"recovered": "fresh_start"}, "Context overflow recovery: fresh start triggered"),
        # A reset by a person is no overflow and no warning.
        ({"trigger": "reset"}, "Reset by a person: the agent begins afresh"),
        # One that failed was none.
        ({"trigger": "reset", "status": "failed"}, ""),
    ],
)
def test_a_fresh_start_is_told_in_the_words_of_the_seed(
    dialog: Dialog, caplog: pytest.LogCaptureFixture, fields: dict[str, Any], told: str
) -> None:
    run = a_run(dialog, **{"status": "applied", **fields})

    log_end(run, dialog.llm)

    found = lines(caplog, "Context overflow recovery") + lines(caplog, "Reset by a person")
    assert [line.startswith(told) and f"(dialog={dialog.pk} run={run.pk})" in line for line in found] == [True] * bool(
        told
    )
    assert fields != {"trigger": "reset"} or {record.levelno for record in caplog.records} == {logging.INFO}


def test_a_step_that_never_ended_has_no_time(dialog: Dialog, caplog: pytest.LogCaptureFixture) -> None:
    begun = a_step("summarize_old", 900, 300, is_running=True)

    log_end(a_run(dialog, status="cancelled", steps=[a_step("trim_payloads", 4500, 4400), begun]), dialog.llm)

    assert caplog.text.strip().endswith("steps=trim_payloads:≈4500→≈4400:12ms")


def test_a_run_that_another_worker_has_is_not_told_twice(caplog: pytest.LogCaptureFixture) -> None:
    log_end(None, LLM())

    assert not caplog.records


def test_a_crash_is_told_as_a_failure(
    dialog: Dialog, alice: User, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    a_history(dialog, pairs=3)
    run = request(dialog=dialog, by=alice)
    monkeypatch.setattr("dialogs.compaction.work.drive", lambda *_arguments: 1 / 0)

    perform(run.pk, embedder="static")

    assert CompactionRun.objects.get(pk=run.pk).status == "failed"
    assert 'reason="It failed from within: ZeroDivisionError."' in lines(caplog, "Compaction ended:")[0]


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
    assert list(reward_log.rows()) == []


def test_a_run_is_logged_with_the_seven_fields_that_its_reward_is_made_of_and_no_word_of_the_dialog(
    dialog: Dialog, logged: None
) -> None:
    run = a_compaction(dialog)

    (row,) = reward_log.rows()

    fields, text = row["stateAfter"]["outcome"], json.dumps(row)
    assert row["reward"] == run.reward
    assert reward(BreakingOutcome(**{SEVEN[name]: value for name, value in fields.items()})) == row["reward"]
    assert row["stateBefore"]["estimatedTokens"] == run.estimated_before
    assert row["stateAfter"]["estimatedTokens"] == run.estimated_after
    assert row["action"]["chain"] == run.chain
    assert str(dialog.pk) not in text
    assert [word for word in ("Friday", "srv", "Question", "Answer", "pump", "turbine") if word in text] == []


def test_a_later_run_earns_what_it_took_from_the_view_and_not_from_all_that_was_ever_said(
    dialog: Dialog, logged: None
) -> None:
    a_compaction(dialog)
    again = a_compaction(dialog)

    *_, row = reward_log.rows()

    fields = row["stateAfter"]["outcome"]
    assert again.status == CompactionRun.Status.APPLIED
    assert fields["originalTokens"] == again.estimated_before
    assert again.estimated_before is not None
    assert again.estimated_after is not None
    assert fields["tokensReduced"] == again.estimated_before - again.estimated_after
    assert row["reward"] == again.reward == reward(BreakingOutcome(**{SEVEN[name]: fields[name] for name in fields}))


def test_erasing_the_dialog_erases_its_lines(dialog: Dialog, logged: None) -> None:
    a_compaction(dialog)
    dialog.refresh_from_db()
    dialog.trashed_at = timezone.now()
    dialog.save()

    erase_dialog(dialog=dialog)

    assert list(reward_log.rows()) == []


def test_a_log_that_cannot_be_written_fails_no_run(dialog: Dialog, logged: None, settings: Any, tmp_path: Path) -> None:
    settings.DOMINDS_DATA_DIR = tmp_path / "away"

    assert a_compaction(dialog).status == "applied"
