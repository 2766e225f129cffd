"""A house for each test: a stand-in with the ways that the test names, Dominds in front of it, Alice's key."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from django.contrib.auth.models import User

from dialogs.common.threads import close_threads
from tests.overflow.house import House, house
from tests.standins.compatible import CompatibleStandin

Build = Callable[..., House]


@pytest.fixture
def build(transactional_db: None, alice: User) -> Iterator[Build]:
    with ExitStack() as opened:
        yield lambda **ways: opened.enter_context(house(CompatibleStandin(**ways), alice))
    # Threads that keep their connections would keep the test's database.
    close_threads()
