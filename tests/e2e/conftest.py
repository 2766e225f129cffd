"""A real browser at a real Dominds. Run apart from the other tests: playwright's event loop and theirs clash.

All modules share two: one without a model of its own, and one with the demo model. Each begins with an empty one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser import executable
from tests.e2e.steps import MOST_CHARS, PASSWORD
from tests.stack import Stack, running_stack

# What comes at once on an idle machine takes longer beside another browser. Who waits for nothing loses nothing.
expect.set_options(timeout=30_000)
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


# In one transaction, at whose end the references are looked at: in any order, that is.
EMPTY = """
from itertools import chain
from django.apps import apps
from django.contrib.auth.models import User
from django.db import transaction
with transaction.atomic():
    for model in chain(*(apps.get_app_config(app).get_models() for app in ("dialogs", "health"))):
        model._base_manager.all()._raw_delete("default")
    User.objects.exclude(username="admin").delete()
"""


@pytest.fixture(scope="session")
def shared_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    settings = {"DOMINDS_ADMIN_PASSWORD": PASSWORD, "DOMINDS_MAX_MESSAGE_CHARS": str(MOST_CHARS)}
    with running_stack(tmp_path_factory.mktemp("shared"), "--no-demo", **settings) as found:
        yield found


@pytest.fixture(scope="session")
def shared_demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with running_stack(tmp_path_factory.mktemp("demo"), DOMINDS_ADMIN_PASSWORD=PASSWORD) as found:
        yield found


@pytest.fixture(scope="module")
def stack(shared_stack: Stack) -> Stack:
    """Nothing in it but its admin. A module leaves it running."""
    shared_stack.shell(EMPTY)
    return shared_stack


@pytest.fixture(scope="module")
def demo(shared_demo: Stack) -> Stack:
    """With the demo agent, and no dialog."""
    shared_demo.shell("from dialogs.models import Dialog; Dialog.objects.all().delete()")
    return shared_demo


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    return {**browser_type_launch_args, "executable_path": executable(), "args": list(QUIET)}


@pytest.fixture(scope="session")
def browser_context_args(browser_context_args: dict[str, Any]) -> dict[str, Any]:
    return {**browser_context_args, "viewport": {"width": 1280, "height": 800}, "locale": "en-US"}


@pytest.fixture
def faults(page: Page) -> Iterator[list[str]]:
    """What the browser complains of: script errors, refused resources, broken policies. None may remain."""
    found: list[str] = []
    page.on("pageerror", lambda error: found.append(str(error)))
    page.on("console", lambda message: found.append(message.text) if message.type == "error" else None)
    yield found
    assert found == []
