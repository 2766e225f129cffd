"""Whatever happens in whatever order, the invariants of compaction hold. Ten thousand orders in `make test-long`."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from hypothesis.stateful import run_state_machine_as_test

from tests.dialogs.driver.event_orders import EventOrders
from tests.dialogs.driver.events_by_hand import EventsByHand

pytestmark = pytest.mark.django_db(transaction=True)


def try_orders(machine: type[EventOrders], count: int, *, always_the_same: bool) -> None:
    run_state_machine_as_test(
        machine,
        settings=hypothesis_settings(
            max_examples=count,
            stateful_step_count=8,
            deadline=None,
            derandomize=always_the_same,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_the_invariants_hold_in_any_order_of_events() -> None:
    try_orders(EventOrders, 8, always_the_same=True)


def test_they_hold_whatever_a_person_does_by_hand() -> None:
    try_orders(EventsByHand, 8, always_the_same=True)


# In portions, so that processes can share them, and that none takes so long on a busy machine as a test that hangs.
@pytest.mark.long
@pytest.mark.parametrize("_portion", range(100))
def test_the_invariants_hold_in_a_hundred_orders_by_chance(_portion: int) -> None:
    try_orders(EventOrders, 100, always_the_same=False)


@pytest.mark.long
@pytest.mark.parametrize("_portion", range(30))
def test_they_hold_in_a_hundred_orders_by_hand_and_by_chance(_portion: int) -> None:
    try_orders(EventsByHand, 100, always_the_same=False)
