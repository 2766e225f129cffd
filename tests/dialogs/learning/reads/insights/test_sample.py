"""Single runs: what each strategy earned, and how long compactions took."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from dialogs.learning.reads.insights import sample as module
from dialogs.learning.reads.insights.sample import Took, sample
from dialogs.learning.reads.insights.scope import Scope
from dialogs.models import Dialog
from tests.dialogs.compaction_runs import a_run, a_step
from tests.dialogs.learning.reads.insights.conftest import Maker


@pytest.fixture
def mine(alice: User) -> Scope:
    return Scope(owner_id=alice.pk)


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

    assert found.all_took == Took(half=10, most=19)
    assert found.took == {(dialog.agent_id, dialog.llm_id): found.all_took}


def test_a_run_that_has_not_ended_took_no_time_yet(dialog: Dialog, mine: Scope) -> None:
    a_run(dialog)

    assert (sample(mine).runs, sample(mine).all_took) == (0, None)


def test_only_the_newest_are_read(mine: Scope, compacted: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_RUNS", 2)
    for seconds in (50, 1, 2):
        compacted(seconds=seconds)

    assert sample(mine).all_took == Took(half=1, most=2)
