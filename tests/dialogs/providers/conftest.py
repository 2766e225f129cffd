"""The upstream of a test, and the providers that speak to it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.dialogs.providers.upstream import Upstream, upstream


@pytest.fixture
async def server() -> AsyncIterator[Upstream]:
    async with upstream() as told:
        yield told
