"""A real browser at a real Dominds. Run apart from the other tests: playwright's event loop and theirs clash."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser import executable
from tests.stack import stack

__all__ = ["stack"]

QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    return {**browser_type_launch_args, "executable_path": executable(), "args": list(QUIET)}
