"""How long the pruning agent is likely to take and what it costs, before it is asked."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from dialogs.compaction.facts import expected, expected_effort, rates_of
from dialogs.compaction.reads.compaction_card import compaction_card
from dialogs.models import Dialog, Generation
from dialogs.turns.writes.messages import post_message
from health.compaction.terms.units import ContextState, Role, Unit
from health.models import LlmPrice
from tests.builders import a_generation
from tests.dialogs.compaction_runs import a_run, a_step

pytestmark = pytest.mark.django_db


def answered(dialog: Dialog, *, times: int, **fields: object) -> None:
    """Answers of one kind: 1,000 prompt tokens were read in two seconds, 100 written in four."""
    dialog.refresh_from_db()
    begun = timezone.now()
    made = {"prompt_tokens": 1000, "completion_tokens": 100, "status": "finished"} | fields
    for _time in range(times):
        generation = a_generation(dialog, **made)
        Generation.objects.filter(pk=generation.pk).update(
            started_at=begun, first_token_at=begun + timedelta(seconds=2), finished_at=begun + timedelta(seconds=6)
        )


@pytest.fixture
def asked(dialog: Dialog) -> Dialog:
    post_message(dialog=dialog, content="Go.")
    return dialog


def test_the_rates_are_those_of_the_models_recent_answers(asked: Dialog) -> None:
    answered(asked, times=3)

    rates = rates_of(asked.llm)

    assert rates is not None
    assert (rates.prompt, rates.completion) == (500, 25)


def test_what_was_cached_was_not_read(asked: Dialog) -> None:
    answered(asked, times=3, cached_tokens=600)

    rates = rates_of(asked.llm)

    assert rates is not None
    assert rates.prompt == 200


def test_two_answers_foretell_nothing(asked: Dialog) -> None:
    answered(asked, times=2)

    assert expected_effort(asked.llm, 5000) == {}


def test_time_and_cost_follow_from_rates_and_price(asked: Dialog) -> None:
    answered(asked, times=3)
    LlmPrice.objects.create(llm=asked.llm, per_million=Decimal(2))

    assert expected_effort(asked.llm, 4700) == {"seconds": pytest.approx(10 + 18.8), "cost": pytest.approx(0.01)}


def test_before_the_agent_is_asked_its_step_foretells_both(asked: Dialog) -> None:
    answered(asked, times=3)
    LlmPrice.objects.create(llm=asked.llm, per_million=Decimal(2))
    run = a_run(asked)
    units = tuple(Unit(id=str(at), role=Role.USER, content="x", estimated_tokens=100) for at in range(10))

    (step,) = expected("prune_with_agent", ContextState(units=units, limit=900), run)

    # All but the first request and the newest three messages are offered.
    assert (step["estimated_before"], step["estimated_after"], step["is_running"]) == (1000, 500, True)
    assert (step["seconds"], step["cost"]) == (pytest.approx(900 / 500 + 100 / 25), pytest.approx(0.0018))
    assert expected("prune_with_agent", ContextState(units=units[-3:], limit=900), run) == []


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ({}, ""),
        ({"seconds": 28.8, "cost": 0.0123}, " · likely ≈29 s · prompt costs ≈0.012"),
        ({"seconds": 300.0}, " · likely ≈5 min"),
    ],
)
def test_the_card_says_so_while_the_agent_is_at_work(dialog: Dialog, known: dict[str, float], said: str) -> None:
    step = a_step("prune_with_agent", 4000, 2000, is_running=True, changed=False) | known
    a_run(dialog, phase="prune_with_agent", steps=[step])

    card = compaction_card(dialog)

    assert card is not None
    assert card.message == f"Summarizing with the pruning agent… (est. 4k → 2k tokens){said}"
