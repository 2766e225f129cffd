"""Whatever happens in whatever order, the invariants of compaction hold. Ten thousand orders in `make test-long`."""

from __future__ import annotations

import pytest
from django.conf import LazySettings
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from hypothesis.stateful import run_state_machine_as_test

from tests.dialogs.driver.event_orders import EventOrders

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("orders", [8, pytest.param(10_000, marks=pytest.mark.long)])
def test_the_invariants_hold_in_any_order_of_events(orders: int, settings: LazySettings) -> None:
    settings.DOMINDS_COMPACTION_WAIT_SECONDS = 0.0

    run_state_machine_as_test(
        EventOrders,
        settings=hypothesis_settings(
            max_examples=orders,
            stateful_step_count=8,
            deadline=None,
            derandomize=orders < 100,
            suppress_health_check=list(HealthCheck),
        ),
    )
