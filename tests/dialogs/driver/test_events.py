"""What the driver records of contexts that are nearly full, over their limit, or refused; and when it asks nothing."""

from __future__ import annotations

from typing import Any

import pytest

from dialogs.models import Dialog
from dialogs.transcript.model_view import load
from dialogs.turns.writes.messages import retry
from health.compaction.config import AtMilestone, ContextConfig
from health.compaction.terms.configuration import dump
from health.models import CompactionRun, ContextEvent, ContextSettings
from tests.dialogs.compacting_builders import a_history, calibrate, estimated, guard
from tests.dialogs.driver.conftest import Play, ask_and_drive, drive_until_idle, said

pytestmark = pytest.mark.django_db(transaction=True)
TOO_LONG: dict[str, Any] = {"error": {"code": "context_overflow", "message": "too long"}}


def codes(dialog: Dialog) -> list[str]:
    return list(ContextEvent.objects.filter(dialog=dialog).order_by("pk").values_list("code", flat=True))


def test_a_request_above_the_threshold_is_a_warning(dialog: Dialog, play: Play) -> None:
    calibrate(dialog.llm)
    a_history(dialog, pairs=30)
    limit = int(estimated(dialog) / 0.85)
    guard(dialog, limit)
    play(said(None))

    ask_and_drive(dialog)

    event = ContextEvent.objects.get(code="WARNING")
    assert codes(dialog) == ["WARNING"]
    assert (event.agent_id, event.llm_id, event.limit) == (dialog.agent_id, dialog.llm_id, limit)


def test_a_request_above_the_limit_is_an_over_hit_with_the_estimate_from_before_compaction(
    dialog: Dialog, play: Play
) -> None:
    guard(dialog)
    a_history(dialog, pairs=30)
    before = estimated(dialog)
    play(said(None))

    ask_and_drive(dialog)

    event = ContextEvent.objects.get(code="OVER_HIT")
    assert codes(dialog) == ["WARNING", "OVER_HIT"]
    assert event.estimated is not None
    assert event.estimated >= before > 3500


def test_the_same_message_is_no_second_over_hit(dialog: Dialog, play: Play) -> None:
    guard(dialog)
    dialog.agent.instructions = "Readings matter. " * 2000
    dialog.agent.save()
    play(said(None))

    ask_and_drive(dialog)
    retry(dialog=dialog)
    drive_until_idle(dialog)

    assert codes(dialog) == ["WARNING", "OVER_HIT", "TOKEN_LIMIT_EXCEEDED", "TOKEN_LIMIT_EXCEEDED"]


def test_a_prompt_that_the_provider_refuses_is_recorded_where_compaction_is_off(dialog: Dialog, play: Play) -> None:
    play(TOO_LONG)

    ask_and_drive(dialog)

    event = ContextEvent.objects.get()
    assert (event.code, event.facts.get("cause")) == ("PROVIDER_OVERFLOW", None)
    assert "too long" not in str(event.facts)


def test_a_run_that_comes_to_nothing_is_recorded_with_its_run(dialog: Dialog, play: Play) -> None:
    """Of one short message nothing can go: the run says so, once, and the refusal is not compacted against again."""
    guard(dialog)
    play(TOO_LONG, said(None))

    ask_and_drive(dialog)

    run = CompactionRun.objects.get()
    assert run.status == "failed"
    assert ContextEvent.objects.get(code="BREAKER_FAILED").run == run


def test_an_automatic_fresh_start_takes_the_place_of_the_compaction(dialog: Dialog, play: Play) -> None:
    config = ContextConfig(on_over_hits=AtMilestone.AUTOMATIC)
    ContextSettings.objects.update_or_create(pk=1, defaults={"values": dump(config)})
    guard(dialog)
    dialog.agent.is_p1 = True
    dialog.agent.save()
    a_history(dialog, pairs=30)
    play(said(None))

    ask_and_drive(dialog)

    run = CompactionRun.objects.get()
    assert (run.trigger, run.status, run.requested_by) == ("reset", "applied", None)
    assert "handover" in {entry.kind for entry in load(run.view)}
    assert codes(dialog) == ["WARNING", "OVER_HIT", "RECOVERY_TRIGGERED"]
    assert ContextEvent.objects.get(code="RECOVERY_TRIGGERED").run == run
    assert dialog.current_leaf is not None
    assert dialog.current_leaf.content == "Done."
