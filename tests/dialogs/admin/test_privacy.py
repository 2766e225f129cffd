"""Staff see settings and numbers, not what other people said."""

from __future__ import annotations

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.test import Client

from dialogs.models import Agent, Dialog, Generation, Message, Provider, QueuedMessage
from health.models import HealthReading

WORDS = "My secret garden"


@pytest.fixture
def secret_dialog(dialog: Dialog) -> Dialog:
    """Alice's dialog, in which her words stand in every field that could show them."""
    course = dialog.courses.get()
    said = Message.objects.create(
        dialog=dialog, course=course, seq=1, turn=1, role="user", origin="typed", content=WORDS
    )
    generation = Generation.objects.create(
        dialog=dialog, course=course, number=1, turn=1, llm=dialog.llm, llm_name="x", prompt_leaf=said,
        fencing_token=1, status="failed", partial_text=WORDS, partial_reasoning=WORDS, error_message=WORDS,
        usage_raw={"echo": WORDS}, manifest={"options": {"x": WORDS}},
    )  # fmt: skip
    HealthReading.objects.create(generation=generation, level="unknown", reason="usage_unavailable")
    dialog.title = WORDS
    dialog.save()
    return dialog


def test_dialogs_and_messages_are_not_in_the_admin() -> None:
    assert not {Dialog, Message, QueuedMessage} & set(admin.site._registry)


def test_no_page_shows_what_was_said(staff: Client, secret_dialog: Dialog, sam: User) -> None:
    generation = secret_dialog.generations.get()
    agent, llm, owner = secret_dialog.agent, secret_dialog.llm, secret_dialog.owner
    pages = [
        "/admin/",
        "/admin/dialogs/generation/",
        f"/admin/dialogs/generation/{generation.pk}/change/",
        "/admin/health/healthreading/",
        f"/admin/health/healthreading/{generation.pk}/change/",
        f"/admin/dialogs/agent/{agent.pk}/delete/",
        f"/admin/dialogs/llm/{llm.pk}/delete/",
        f"/admin/dialogs/provider/{llm.provider.pk}/delete/",
        f"/admin/auth/user/{owner.pk}/delete/",
    ]

    for path in pages:
        response = staff.get(path)
        assert response.status_code == 200, path
        assert WORDS not in response.content.decode(), path


def test_generations_cannot_be_changed_or_deleted(staff: Client, secret_dialog: Dialog) -> None:
    page = f"/admin/dialogs/generation/{secret_dialog.generations.get().pk}"

    assert staff.post(f"{page}/change/", {"status": "finished"}).status_code == 403
    assert staff.post(f"{page}/delete/", {"post": "yes"}).status_code == 403


def test_what_dialogs_need_is_not_deleted(staff: Client, secret_dialog: Dialog) -> None:
    owner = secret_dialog.owner

    page = staff.post(f"/admin/auth/user/{owner.pk}/delete/", {"post": "yes"}).content.decode()

    assert "1 dialog needs it" in page
    assert User.objects.filter(pk=owner.pk).exists()


def test_what_no_dialog_needs_is_deleted(staff: Client, agent: Agent, provider: Provider) -> None:
    staff.post(f"/admin/dialogs/agent/{agent.pk}/delete/", {"post": "yes"})
    staff.post(f"/admin/dialogs/provider/{provider.pk}/delete/", {"post": "yes"})

    assert not Agent.objects.exists()
    assert not Provider.objects.exists()
