"""One real Dominds for all whose processes are killed: to start takes longer than to die."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.stack import Stack, running_stack

# Nobody but the worker takes up a run that is only queued: it is the one that is killed.
SETTINGS = {"DOMINDS_COMPACTION_WAIT_SECONDS": "120"}


@pytest.fixture(scope="package")
def mortal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Whose process a test kills, that waits until it is there again. Each writes the script that it needs."""
    with running_stack(tmp_path_factory.mktemp("mortal"), "--no-demo", **SETTINGS) as found:
        yield found
