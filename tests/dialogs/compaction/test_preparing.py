"""The pruning agent is asked while there is still room, so that nobody waits for it when the context is full."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.utils import timezone

from dialogs.compaction import preparing
from dialogs.compaction.preparing import is_soon, prepare
from dialogs.compaction.work import perform
from dialogs.compaction.writes.compaction import queue_run
from dialogs.compaction.writes.view_changes import undo
from dialogs.llms.guard import active_guard
from dialogs.models import LLM, Agent, Dialog, Message, MessageMark, Provider
from dialogs.turns.reads.turns import dialog_to_drive
from health.configured import ONLY
from health.models import CompactionRun, ContextSettings, LlmPrice, PreparedPruning
from tests.dialogs.compacting_builders import a_history, estimated, guard

pytestmark = pytest.mark.django_db(transaction=True)
PRUNER_FIRST = {"how": "chain", "breaking_strategy": {"chain_order": ["prune_with_agent", "truncate"]}}


@pytest.fixture
def pruner(db: Any) -> Agent:
    """An agent on a server of its own, that is chosen to prune with."""
    says(dropping())
    provider = Provider.objects.create(name="pruner", kind="scripted", base_url="pruner.json")
    llm = LLM.objects.create(provider=provider, model_id="pruner-1", context_length=50_000)
    agent = Agent.objects.create(name="Pruner", slug="pruner", llm=llm)
    ContextSettings.objects.update_or_create(pk=ONLY, defaults={"pruning_agent": agent})
    return agent


def says(*steps: dict[str, Any]) -> None:
    Path(settings.DOMINDS_DATA_DIR, "pruner.json").write_text(json.dumps({"steps": list(steps)}))
    Path(settings.DOMINDS_DATA_DIR, "pruner.json.requests.jsonl").unlink(missing_ok=True)


def times_asked() -> int:
    log = Path(settings.DOMINDS_DATA_DIR, "pruner.json.requests.jsonl")
    return len(log.read_text().splitlines()) if log.exists() else 0


def dropping(*messages: Message) -> dict[str, Any]:
    return {"text": json.dumps({"drop": [str(one.pk) for one in messages], "summaries": [], "summary": "Old."})}


@pytest.fixture
def filling(dialog: Dialog, pruner: Agent) -> list[Message]:
    """All that was said in a dialog that will soon be full; of it, the pruner wants the oldest to go."""
    guard(dialog)
    dialog.agent.own_settings = json.dumps(PRUNER_FIRST)
    dialog.agent.save()
    said = a_history(dialog, pairs=14)
    assert preparing.is_soon(active_guard(dialog), tokens=estimated(dialog))
    says(dropping(*said[2:18]), dropping())
    return said


def compacted(dialog: Dialog) -> CompactionRun:
    """The run that comes when more was said."""
    row = dialog_to_drive(dialog.pk)
    a_history(row, pairs=3)
    found = active_guard(row)
    assert found is not None
    run = queue_run(row, guard=found, trigger="pre_request")
    perform(run.pk, embedder="static")
    run.refresh_from_db()
    return run


def test_what_was_decided_beforehand_is_followed_and_nobody_is_asked_again(
    dialog: Dialog, filling: list[Message]
) -> None:
    assert prepare(dialog.pk)
    before = times_asked()

    run = compacted(dialog)

    assert run.status == "applied", run.reason
    assert times_asked() == before
    assert {one.pk for one in filling[2:18]} <= set(run.removed)
    assert next(step["phase"] for step in run.steps if step["changed"]) == "prune_with_agent"


def test_it_is_no_run_and_changes_nothing_until_then(dialog: Dialog, filling: list[Message]) -> None:
    before = estimated(dialog)

    assert prepare(dialog.pk)

    assert not CompactionRun.objects.exists()
    assert estimated(dialog_to_drive(dialog.pk)) == before


def test_a_claim_from_before_the_clock_went_back_keeps_nobody_out(dialog: Dialog, filling: list[Message]) -> None:
    assert prepare(dialog.pk)
    PreparedPruning.objects.update(claimed_until=timezone.now() + timedelta(hours=1), answers=[])

    assert prepare(dialog.pk)


def test_it_is_asked_once_for_the_same_messages(dialog: Dialog, filling: list[Message]) -> None:
    assert prepare(dialog.pk)
    before = times_asked()

    assert not prepare(dialog.pk)
    assert times_asked() == before


def test_an_answer_that_cannot_be_followed_is_not_asked_for_again(dialog: Dialog, filling: list[Message]) -> None:
    says({"text": "no JSON at all"})

    assert not prepare(dialog.pk)
    assert not prepare(dialog.pk)
    assert times_asked() == 1


def test_a_pin_makes_it_be_asked_anew(dialog: Dialog, filling: list[Message]) -> None:
    prepare(dialog.pk)
    MessageMark.objects.create(message=filling[4], pinned=True)

    run = compacted(dialog)

    assert times_asked() > 1
    assert filling[4].pk not in run.removed


@pytest.mark.parametrize("what", ["limit", "model"])
def test_other_settings_make_it_be_asked_anew(dialog: Dialog, filling: list[Message], pruner: Agent, what: str) -> None:
    prepare(dialog.pk)
    if what == "limit":
        dialog.agent.context_limit = 3600
        dialog.agent.save()
    else:
        other = LLM.objects.create(provider=pruner.llm.provider, model_id="pruner-2", context_length=50_000)
        Agent.objects.filter(pk=pruner.pk).update(llm=other)

    compacted(dialog)

    assert times_asked() > 1


def test_nothing_is_prepared_while_an_undo_holds(dialog: Dialog, filling: list[Message], alice: User) -> None:
    prepare(dialog.pk)
    run = compacted(dialog)
    undo(dialog=dialog, run_id=run.pk, by=alice)

    assert not PreparedPruning.objects.exists()
    assert not prepare(dialog.pk)


@pytest.mark.parametrize("why", ["price", "far", "shared", "never"])
def test_nobody_is_kept_waiting_and_nothing_is_charged_by_default(
    dialog: Dialog, filling: list[Message], pruner: Agent, why: str
) -> None:
    if why == "price":
        LlmPrice.objects.create(llm=pruner.llm, per_million=2)
    elif why == "far":
        Provider.objects.filter(name="pruner").update(kind="openai", base_url="https://llm.example.com/v1")
    elif why == "shared":
        ContextSettings.objects.update(pruning_agent=None)
    else:
        ContextSettings.objects.update(values="context_config:\n  prepare: never\n")

    assert not prepare(dialog.pk)
    assert times_asked() == 0


def test_staff_may_have_it_asked_all_the_same(dialog: Dialog, filling: list[Message], pruner: Agent) -> None:
    LlmPrice.objects.create(llm=pruner.llm, per_million=2)
    ContextSettings.objects.update(values="context_config:\n  prepare: always\n")

    assert prepare(dialog.pk)


def test_far_from_the_threshold_it_is_not_asked(dialog: Dialog, filling: list[Message]) -> None:
    ContextSettings.objects.update(values="context_config:\n  prepare_from: 1.0\n")

    assert not prepare(dialog.pk)


def test_above_the_threshold_the_run_asks_and_nobody_else(dialog: Dialog, filling: list[Message]) -> None:
    assert not is_soon(active_guard(dialog), tokens=2801)


def test_only_a_chain_that_begins_with_the_pruning_agent_has_something_to_prepare(dialog: Dialog) -> None:
    guard(dialog)

    assert not is_soon(active_guard(dialog), tokens=3400)
    assert not is_soon(None, tokens=3400)


def test_a_worker_that_died_over_it_leaves_it_to_the_next(dialog: Dialog, filling: list[Message]) -> None:
    prepare(dialog.pk)
    PreparedPruning.objects.update(answers=[], claimed_until="2001-01-01T00:00:00Z")

    assert prepare(dialog.pk)
