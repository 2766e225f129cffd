"""Browsers of the cast, and rows that lists are made of."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from dialogs.models import Agent, Course, Dialog

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
