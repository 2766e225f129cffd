"""The test world's cast: Alice owns the dialog, Bob does not, Sam is staff."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone, translation

from dialogs.models import LLM, Agent, Course, Dialog, Provider


@pytest.fixture(autouse=True)
def in_english() -> Iterator[None]:
    """A request leaves its language behind in the thread; the next test must not inherit it."""
    with translation.override("en"):
        yield


@pytest.fixture(autouse=True)
def quick_passwords(request: pytest.FixtureRequest, settings: Any) -> None:
    """A slow hash is right for people and a tenth of a second lost in a test; real processes have the real one."""
    if "stack" not in request.keywords:
        settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher", *settings.PASSWORD_HASHERS]


@pytest.fixture
def alice(db: Any) -> User:
    return User.objects.create_user("alice", password="alice-pass-1")


@pytest.fixture
def bob(db: Any) -> User:
    return User.objects.create_user("bob", password="bob-pass-1")


@pytest.fixture
def sam(db: Any) -> User:
    return User.objects.create_user("sam", password="sam-pass-1", is_staff=True, is_superuser=True)


@pytest.fixture
def provider(db: Any) -> Provider:
    return Provider.objects.create(name="scripted", kind="scripted", base_url="script.json")


@pytest.fixture
def llm(provider: Provider) -> LLM:
    return LLM.objects.create(
        provider=provider, model_id="tiny", context_length=1000, context_length_source="admin", optimal_max_tokens=500
    )


@pytest.fixture
def agent(llm: LLM) -> Agent:
    return Agent.objects.create(name="Helper", slug="helper", instructions="You help.", llm=llm)


@pytest.fixture
def dialog(alice: User, agent: Agent) -> Dialog:
    """Alice's dialog with the agent Helper: empty, idle, one course."""
    dialog = Dialog.objects.create(owner=alice, agent=agent, llm=agent.llm, active_at=timezone.now())
    Course.objects.create(dialog=dialog, number=1)
    return dialog
