"""Proposals: what leads to one, and that only a person puts it into force, changes it, or takes it back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from dialogs.common.errors import DialogError
from dialogs.compaction.settings.views import what_if
from dialogs.compaction.writes.context_settings import save_settings
from dialogs.learning.writes import accept, dismiss, happened, make_proposals, undo
from dialogs.models import LLM, Agent, Dialog
from dialogs.turns.writes.events import log
from health.compaction.config import ContextConfig
from health.configured import context_config, context_settings
from health.models import ContextEvent, Proposal, SettingsChange
from tests.dialogs.compacting_builders import a_history, guard
from tests.dialogs.compaction_runs import a_run

Made = Callable[[], Proposal]
RECENT_FIRST = ["prioritize_recent", "summarize_old", "content_type_chunking", "discard_low_rel", "hybrid"]


def over_hits(agent: Agent, count: int = 5, code: str = "OVER_HIT") -> None:
    ContextEvent.objects.bulk_create(ContextEvent(code=code, agent=agent, llm=agent.llm) for _each in range(count))


@pytest.fixture
def trouble(dialog: Dialog) -> Agent:
    """Helper has 3,500 tokens, and its messages bring more than a thousand each."""
    guard(dialog, limit=3500)
    a_history(dialog, pairs=12, sentences=60)
    over_hits(dialog.agent)
    return dialog.agent


@pytest.fixture
def limit(trouble: Agent) -> Proposal:
    (made,) = make_proposals()
    return made


@pytest.fixture
def chain(dialog: Dialog) -> Proposal:
    """The order with the recent first was in force for a while, and earned more."""
    worth = {tuple(ContextConfig().chain_order): 1.0, tuple(RECENT_FIRST): 1.4}
    for number in range(40):
        for order, reward in worth.items():
            a_run(
                dialog, status="applied", chain=["trim_payloads", *order, "select_passages"], estimated_before=5200,
                reward=reward + number % 5 / 50, finished_at=timezone.now(),
            )  # fmt: skip
    (made,) = make_proposals()
    return made


def test_a_limit_that_is_often_exceeded_is_proposed_higher_with_what_that_would_do(limit: Proposal) -> None:
    assert limit.before == {"limit": 3500, "own": 3500, "is_on": True}
    assert limit.after["limit"] > 3500
    assert limit.evidence == {"findings": {"OVER_HIT": 5}, "dialogs": 1}
    now, then = limit.expected["over_hits"]
    assert then <= now / 2


def test_few_events_are_no_pattern(dialog: Dialog) -> None:
    guard(dialog)
    a_history(dialog, pairs=12, sentences=60)
    over_hits(dialog.agent, count=2)

    assert make_proposals() == []


def test_it_sees_what_the_settings_page_foretells(trouble: Agent, alice: User) -> None:
    """The replay and "What would have happened" are one and the same."""
    (predicted,) = what_if(ContextConfig(), owner=alice)
    (made,) = make_proposals()

    assert (predicted.begins_at is not None) == (made.expected["compactions"][0] > 0)


def test_never_past_the_window_less_what_is_kept_for_the_answer(trouble: Agent) -> None:
    LLM.objects.update(context_length=8000)

    made = make_proposals()

    assert all(one.after["limit"] <= 7200 for one in made)


def test_accepting_puts_it_into_force_and_into_the_trail(limit: Proposal, sam: User) -> None:
    accept(proposal_id=limit.pk, by=sam)

    limit.refresh_from_db()
    agent = Agent.objects.get()
    assert (limit.status, limit.decided_by, limit.accepted) == ("accepted", sam, limit.after)
    assert (agent.context_limit, agent.context_budget) == (limit.after["limit"], True)
    change = SettingsChange.objects.get()
    assert (change.key, change.before, change.after, change.changed_by) == (
        "agents.helper.context_limit", "3500", str(limit.after["limit"]), sam,
    )  # fmt: skip


@pytest.mark.parametrize("change", [{"limit": 3499}, {"limit": 90_001}, {"warning_threshold": 0.9}, {"limit": "6200"}])
def test_what_is_out_of_bounds_or_no_limit_is_refused(limit: Proposal, sam: User, change: dict[str, Any]) -> None:
    with pytest.raises(DialogError):
        accept(proposal_id=limit.pk, by=sam, change=change)

    assert Agent.objects.get().context_limit == 3500


def test_an_agent_without_a_limit_of_its_own_is_again_without_one(limit: Proposal, sam: User) -> None:
    Agent.objects.update(context_limit=None, context_budget=False)
    Proposal.objects.update(before={"limit": 5000, "own": None, "is_on": False})

    accept(proposal_id=limit.pk, by=sam)
    undo(proposal_id=limit.pk, by=sam)

    agent = Agent.objects.get()
    assert (agent.context_limit, agent.context_budget) == (None, False)


@pytest.mark.parametrize("accepted", [True, False], ids=["undo", "accept"])
def test_what_somebody_changed_since_is_neither_undone_nor_overwritten(
    limit: Proposal, sam: User, accepted: bool
) -> None:
    if accepted:
        accept(proposal_id=limit.pk, by=sam)
    Agent.objects.update(context_limit=7777)

    with pytest.raises(DialogError):
        (undo if accepted else accept)(proposal_id=limit.pk, by=sam)

    assert Agent.objects.get().context_limit == 7777


@pytest.mark.parametrize("decide", [accept, dismiss])
def test_it_is_decided_once(limit: Proposal, sam: User, decide: Callable[..., Proposal]) -> None:
    decide(proposal_id=limit.pk, by=sam)

    with pytest.raises(DialogError, match="already"):
        accept(proposal_id=limit.pk, by=sam)


def test_what_was_dismissed_is_not_proposed_again_the_same_week(limit: Proposal, sam: User) -> None:
    dismiss(proposal_id=limit.pk, by=sam)
    over_hits(limit.agent)

    assert make_proposals() == []
    Proposal.objects.update(decided_at=timezone.now() - timedelta(days=8))
    assert len(make_proposals()) == 1


def test_what_happened_before_an_accepted_change_is_no_reason_for_another(limit: Proposal, sam: User) -> None:
    accept(proposal_id=limit.pk, by=sam, change={"limit": 3600})

    assert make_proposals() == []
    over_hits(limit.agent)
    assert len(make_proposals()) == 1


def test_an_order_that_earned_more_is_proposed_for_all(chain: Proposal) -> None:
    assert (chain.kind, chain.agent) == ("chain", None)
    assert chain.after == {"chain": RECENT_FIRST}
    assert chain.expected["lower"] > 0
    assert (chain.evidence["runs"], chain.evidence["llms"].keys()) == (40, {"scripted/tiny"})


def test_an_order_is_accepted_through_the_settings_and_undone(chain: Proposal, sam: User) -> None:
    accept(proposal_id=chain.pk, by=sam)
    assert list(context_config().chain_order) == RECENT_FIRST
    assert SettingsChange.objects.get().key == "breaking_strategy.chain_order"

    undo(proposal_id=chain.pk, by=sam)
    assert context_config() == ContextConfig()


@pytest.mark.parametrize("order", [["no_such_strategy"], ["truncate", "truncate"]])
def test_an_order_that_makes_no_sense_is_refused(chain: Proposal, sam: User, order: list[str]) -> None:
    with pytest.raises(DialogError):
        accept(proposal_id=chain.pk, by=sam, change={"chain": order})

    assert context_config() == ContextConfig()


def test_other_settings_that_changed_meanwhile_stay(chain: Proposal, sam: User) -> None:
    config = replace(ContextConfig(), default_limit=6000)
    save_settings(config=config, pruning_agent=None, by=sam, version=context_settings().version)

    accept(proposal_id=chain.pk, by=sam)

    assert context_config() == replace(config, chain_order=tuple(RECENT_FIRST))


# What the critic is told of what happened: which events and which results, of whom and how long ago.


NOW = timezone.now()


def codes() -> list[str]:
    return [one.code for one in happened(NOW)]


@pytest.mark.parametrize(("coherence", "told"), [(0.649, ["COHERENCE_DROP"]), (0.65, []), (None, [])])
def test_a_result_below_065_is_a_drop(dialog: Dialog, coherence: float | None, told: list[str]) -> None:
    a_run(dialog, status="applied", coherence=coherence, finished_at=NOW)

    assert codes() == told


@pytest.mark.parametrize(("age", "told"), [(timedelta(hours=23, minutes=59), 2), (timedelta(hours=24, minutes=1), 0)])
def test_what_is_older_than_a_day_is_not_told(dialog: Dialog, age: timedelta, told: int) -> None:
    a_run(dialog, status="applied", coherence=0.1, finished_at=NOW - age)
    log("OVER_HIT", dialog)
    ContextEvent.objects.update(happened_at=NOW - age)

    assert len(codes()) == told


def test_what_belongs_to_no_agent_is_not_told(dialog: Dialog) -> None:
    log("OVER_HIT", dialog)
    ContextEvent.objects.update(agent=None)

    assert codes() == []
