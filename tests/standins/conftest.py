"""One real model for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.standins.real import real_llm


@pytest.fixture(scope="package")
def real_server() -> Iterator[str]:
    with real_llm(context=1024) as url:
        yield url
