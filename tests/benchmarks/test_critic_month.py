"""A small month of `python -m benchmarks.critic_month`: the critic helps in dialogs that it never saw."""

from __future__ import annotations

import pytest

from benchmarks.critic_month import month


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_accepted_proposals_halve_the_over_hits_of_dialogs_never_seen(seed: int) -> None:
    found = month(count=30, days=10, seed=seed)

    assert found.steady_after <= found.steady_before / 2
    assert found.proposals > 0
    assert found.past_the_window == 0


def test_the_same_seed_is_the_same_month() -> None:
    assert month(count=5, days=3, seed=4) == month(count=5, days=3, seed=4)


def test_a_critic_that_nobody_listens_to_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.critic_month._look", lambda agent, now: False)

    found = month(count=10, days=4, seed=1)

    assert found.before == found.after > 0
