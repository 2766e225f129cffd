"""The table of figures: whose, of what, since when, and that nothing known is not the same as none."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from dialogs.learning.reads import figures as module
from dialogs.learning.reads.figures import MOST_PAIRS, Durations, Figures, sample, table
from dialogs.learning.reads.series import Scope
from dialogs.models import Agent, Dialog
from health.models import ContextEvent, LlmCalibration
from tests.dialogs.compaction_runs import a_run, a_step
from tests.dialogs.learning.reads.insights.conftest import Maker


@pytest.fixture
def mine(alice: User) -> Scope:
    return Scope(owner_id=alice.pk)


def test_each_agent_with_its_llm_is_a_row_and_all_together_another(
    dialog: Dialog, mine: Scope, measured: Maker, happened: Maker, compacted: Maker
) -> None:
    measured(300)
    measured(900)
    happened("OVER_HIT")
    happened("WARNING")
    compacted(reward=1.2, coherence=0.9)
    compacted(reward=0.8)
    compacted(status="failed", reward=-1.0, estimated_after=4500)

    found = table(mine)

    (row,) = found.pairs
    assert (row.agent, row.llm) == (dialog.agent, dialog.llm)
    assert (row.figures.generations, row.figures.highest) == (2, 900)
    assert (row.figures.over_hits, row.figures.warnings, row.figures.overflows) == (1, 1, 0)
    assert row.figures.statuses == [("applied", 2), ("failed", 1)]
    assert row.figures.reward.value == pytest.approx(1.0 / 3)
    assert (row.figures.coherence.value, row.figures.coherence.count) == (0.9, 1)
    assert row.figures.saved_tokens == 2 * (4500 - 3420)
    assert found.total.figures == row.figures


def test_neither_a_compaction_by_hand_nor_a_refusal_tells_that_somebody_was_guarded(
    mine: Scope, happened: Maker, compacted: Maker
) -> None:
    compacted(trigger="manual")
    happened("PROVIDER_OVERFLOW")

    figures = table(mine).total.figures

    assert (figures.over_hits, figures.warnings, figures.overflows) == (None, None, 1)


def test_who_is_guarded_no_longer_and_had_a_warning_had_no_over_hit(mine: Scope, happened: Maker) -> None:
    happened("WARNING")

    assert table(mine).total.figures.over_hits == 0


def test_nobody_elses_dialogs_are_counted(bob: User, measured: Maker, happened: Maker, compacted: Maker) -> None:
    measured(300)
    happened("OVER_HIT")
    compacted()

    assert table(Scope(owner_id=bob.pk)).total.figures == Figures()
    assert table(Scope()).total.figures.trouble == 2


def test_what_was_before_the_period_does_not_count(
    alice: User, now: datetime, measured: Maker, happened: Maker, compacted: Maker
) -> None:
    for ago in (timedelta(hours=1), timedelta(days=3)):
        measured(300, ago=ago)
        happened("OVER_HIT", ago=ago)
        compacted(ago=ago)

    figures = table(Scope(owner_id=alice.pk, since=now - timedelta(days=1))).total.figures

    assert (figures.generations, figures.over_hits, figures.runs) == (1, 1, {"applied": 1})


def test_an_agent_or_an_llm_alone_can_be_asked_for(dialog: Dialog, mine: Scope, happened: Maker) -> None:
    happened("OVER_HIT")
    zoe = Agent.objects.create(name="Zoe", slug="zoe", llm=dialog.llm)

    assert table(mine.of(agent_id=dialog.agent_id, llm_id=dialog.llm_id)).total.figures.over_hits == 1
    assert table(mine.of(agent_id=zoe.pk, llm_id=dialog.llm_id)).pairs == ()


def test_beyond_the_most_rows_the_rest_is_in_the_total(dialog: Dialog, mine: Scope) -> None:
    agents = Agent.objects.bulk_create(
        Agent(name=f"A {at}", slug=f"a{at}", llm=dialog.llm) for at in range(MOST_PAIRS + 3)
    )
    ContextEvent.objects.bulk_create(
        ContextEvent(code="OVER_HIT", owner=dialog.owner, agent=one, llm=dialog.llm, happened_at=timezone.now())
        for one in agents
    )

    found = table(mine)

    assert (len(found.pairs), found.left_out, found.total.figures.over_hits) == (MOST_PAIRS, 3, MOST_PAIRS + 3)


def test_where_most_went_wrong_stands_first(dialog: Dialog, mine: Scope, happened: Maker, measured: Maker) -> None:
    zoe = Agent.objects.create(name="Zoe", slug="zoe", llm=dialog.llm)
    measured(300)
    ContextEvent.objects.create(code="OVER_HIT", owner=dialog.owner, agent=zoe, llm=dialog.llm)

    assert [pair.agent for pair in table(mine).pairs] == [zoe, dialog.agent]


def test_an_agent_that_is_gone_keeps_its_row_without_a_name(dialog: Dialog, mine: Scope) -> None:
    ContextEvent.objects.create(code="OVER_HIT", owner=dialog.owner, agent=None, llm=dialog.llm)

    (row,) = table(mine).pairs

    assert (row.agent, row.llm, row.figures.over_hits) == (None, dialog.llm, 1)


def test_times_and_errors_stand_with_whose_they_are(
    dialog: Dialog, alice: User, compacted: Maker, happened: Maker
) -> None:
    zoe = Agent.objects.create(name="Zoe", slug="zoe", llm=dialog.llm)
    LlmCalibration.objects.create(llm=dialog.llm, samples=[[90, 90, 100]])
    compacted(seconds=3)
    happened("WARNING")
    ContextEvent.objects.create(code="OVER_HIT", owner=alice, agent=zoe, llm=dialog.llm)
    ContextEvent.objects.create(code="OVER_HIT", owner=alice, agent=None, llm=None)

    found = table(Scope(owner_id=alice.pk))

    told = {
        row.agent: (row.took and row.took.median, row.estimate_error and row.estimate_error.reports)
        for row in found.pairs
    }
    assert told == {dialog.agent: (3.0, 1), zoe: (None, 1), None: (None, None)}
    assert found.total.took is not None
    assert (found.total.figures.over_hits, found.total.took.median, found.total.is_total) == (2, 3.0, True)


def test_a_reward_is_of_every_strategy_that_changed_something(mine: Scope, compacted: Maker) -> None:
    idle, trimmed = a_step("summarize_old", 4500, 4500), a_step("trim_payloads", 4500, 4000)
    compacted(reward=1.0, steps=[a_step("detection", 4500, 4500), trimmed, a_step("success", 4000, 3420)])
    compacted(reward=1.4, steps=[idle, trimmed, a_step("select_passages", 4000, 3420)])
    compacted(reward=None, steps=[trimmed])

    trim, select = sample(mine).earned

    assert (trim.strategy, trim.runs, trim.mean) == ("trim_payloads", 2, pytest.approx(1.2))
    assert trim.spread == pytest.approx(0.283, abs=0.001)
    assert (select.strategy, select.runs, select.mean, select.spread) == ("select_passages", 1, 1.4, None)


def test_times_are_ones_that_were_measured(dialog: Dialog, mine: Scope, compacted: Maker) -> None:
    for seconds in range(1, 21):
        compacted(seconds=seconds)

    found = sample(mine)

    assert found.all_took == Durations(median=10, p95=19)
    assert found.took == {(dialog.agent_id, dialog.llm_id): found.all_took}


def test_a_run_that_has_not_ended_took_no_time_yet(dialog: Dialog, mine: Scope) -> None:
    a_run(dialog)

    assert (sample(mine).runs, sample(mine).all_took) == (0, None)


def test_only_the_newest_are_read(mine: Scope, compacted: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_RUNS", 2)
    for seconds in (50, 1, 2):
        compacted(seconds=seconds)

    assert sample(mine).all_took == Durations(median=1, p95=2)
