"""Browsers of the cast, and rows that lists are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Event

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from dialogs.models import Agent, Course, Dialog, Message
from dialogs.pages import accounts
from tests.dialogs.compacting_builders import a_history

Maker = Callable[..., Dialog]


@pytest.fixture
def as_alice(alice: User) -> Client:
    client = Client()
    client.force_login(alice)
    return client


@pytest.fixture
def as_bob(bob: User) -> Client:
    client = Client()
    client.force_login(bob)
    return client


@pytest.fixture
def as_sam(sam: User) -> Client:
    client = Client()
    client.force_login(sam)
    return client


@pytest.fixture
def a_dialog(alice: User, agent: Agent) -> Maker:
    """Makes dialogs of Alice's: `a_dialog("Title", archived=True)`."""

    def make(title: str = "", *, archived: bool = False, trashed: bool = False) -> Dialog:
        now = timezone.now()
        dialog = Dialog.objects.create(
            owner=alice,
            agent=agent,
            llm=agent.llm,
            title=title,
            active_at=now,
            archived_at=now if archived else None,
            trashed_at=now if trashed else None,
        )
        Course.objects.create(dialog=dialog, number=1)
        return dialog

    return make


@pytest.fixture
def a_long_line(settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Somebody else's password takes longer than anybody waits."""
    quick, *real = settings.PASSWORD_HASHERS
    settings.PASSWORD_HASHERS = [*real, quick]
    over = Event()
    monkeypatch.setattr(accounts, "HASHING_SECONDS", 0.05)
    accounts._hashing.submit(over.wait, 60)
    yield
    over.set()


@pytest.fixture
def history(dialog: Dialog) -> list[Message]:
    """Twelve questions with their answers; the dialog is at rest."""
    return a_history(dialog, pairs=12)
