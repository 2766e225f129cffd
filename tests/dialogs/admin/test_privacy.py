"""Staff see settings and numbers, not what other people said."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from dialogs.models import (
    Agent,
    AutonomousRun,
    Blob,
    Course,
    Dialog,
    Generation,
    McpServer,
    Message,
    Provider,
    Question,
    QueuedMessage,
    RemediationPrompt,
    Reminder,
    ToolCall,
)
from dialogs.turns.writes.messages import post_message
from health.models import HealthReading
from tests.builders import a_generation

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
    add_work(said)
    dialog.title = dialog.taskdoc = WORDS
    dialog.save()
    return dialog


def add_work(said: Message) -> None:
    """What the agent wrote down, did and was asked to do, in the same words."""
    dialog, course = said.dialog, said.course
    course.carried = {"said": WORDS}
    course.save()
    Reminder.objects.create(dialog=dialog, number=1, position=1, content=WORDS, author="agent", course=course)
    call = ToolCall.objects.create(
        message=said, position=0, call_id=WORDS, name=WORDS, arguments=WORDS, result=WORDS, status="done"
    )
    Question.objects.create(dialog=dialog, tool_call=call, text=WORDS, choices=[WORDS], answer=WORDS)
    RemediationPrompt.objects.create(dialog=dialog, course=course, message=said, level="caution", notice=WORDS)
    AutonomousRun.objects.create(dialog=dialog, goal=WORDS, max_generations=1, first_course=1, summary=WORDS)
    Blob.objects.create(sha256="a" * 64, content=WORDS)


def test_what_people_and_agents_say_is_not_in_the_admin() -> None:
    private = {Dialog, Course, Message, QueuedMessage, Blob}
    private |= {Reminder, ToolCall, Question, RemediationPrompt, AutonomousRun}

    assert not private & set(admin.site._registry)


@pytest.mark.parametrize(
    "address",
    [
        "dialogs/generation/?partial_text__startswith=M",
        "dialogs/generation/?error_message__contains=secret",
        "dialogs/generation/?manifest__options__x__contains=secret",
        "dialogs/generation/?prompt_leaf__content__contains=secret",
        "dialogs/generation/?llm__dialogs__title__contains=secret",
        "health/healthreading/?generation__partial_text__contains=secret",
        "dialogs/agent/?dialogs__taskdoc__contains=secret",
        "auth/user/?dialogs__title__contains=secret",
    ],
)
def test_no_text_can_be_guessed_from_the_address_of_a_list(address: str, staff: Client, secret_dialog: Dialog) -> None:
    assert staff.get(f"/admin/{address}").status_code == 400


@pytest.mark.parametrize("chosen", ["status__exact=failed", "error_code__exact=x", "started_at__year=2026"])
def test_generations_are_filtered_by_what_the_page_offers(chosen: str, staff: Client, secret_dialog: Dialog) -> None:
    assert staff.get(f"/admin/dialogs/generation/?{chosen}&llm__id__exact={secret_dialog.llm.pk}").status_code == 200


def test_what_went_wrong_is_told_in_words_also_in_the_filter(staff: Client, secret_dialog: Dialog) -> None:
    Generation.objects.update(status="failed", error_code="rate_limited")

    page = staff.get("/admin/dialogs/generation/?error_code=rate_limited").content.decode()

    assert page.count("The provider asks us to slow down.") >= 1
    assert ">rate_limited<" not in page


def test_a_generation_is_headed_with_its_state_in_the_language_of_the_page(
    staff: Client, secret_dialog: Dialog
) -> None:
    Generation.objects.update(status="failed")
    address = f"/admin/dialogs/generation/{secret_dialog.generations.get().pk}/change/"

    assert "/1 失败" in staff.get(address, headers={"accept-language": "zh-hans"}).content.decode()


def test_no_page_shows_what_was_said(staff: Client, secret_dialog: Dialog, sam: User) -> None:
    generation = secret_dialog.generations.get()
    agent, llm, owner = secret_dialog.agent, secret_dialog.llm, secret_dialog.owner
    server = McpServer.objects.create(name="time", transport="stdio", command="time")
    agent.mcp_servers.add(server)
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
        f"/admin/dialogs/mcpserver/{server.pk}/delete/",
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
    assert "untick “Active”" in page
    assert User.objects.filter(pk=owner.pk).exists()


def test_what_no_dialog_needs_is_deleted(staff: Client, agent: Agent, provider: Provider) -> None:
    staff.post(f"/admin/dialogs/agent/{agent.pk}/delete/", {"post": "yes"})
    staff.post(f"/admin/dialogs/provider/{provider.pk}/delete/", {"post": "yes"})

    assert not Agent.objects.exists()
    assert not Provider.objects.exists()


# The admin's list of generations: numbers of calls to providers.


@pytest.mark.parametrize(("seconds", "shown"), [(90, "90.0"), (0, "0.0"), (-3600, "—"), (None, "—")])
def test_how_long_a_call_took_is_unknown_while_it_runs_and_where_the_clock_was_set_back(
    staff: Client, dialog: Dialog, seconds: int | None, shown: str
) -> None:
    post_message(dialog=dialog, content="Hello")
    dialog.refresh_from_db()
    made, now = a_generation(dialog), timezone.now()
    finished = None if seconds is None else now + timedelta(seconds=seconds)
    Generation.objects.filter(pk=made.pk).update(started_at=now, finished_at=finished)

    page = staff.get("/admin/dialogs/generation/").content.decode()

    assert f'<td class="field-took">{shown}</td>' in page


# The admin as a part of the whole: its pages look like the others'.


@pytest.mark.parametrize("path", ["/", "/admin/"])
def test_every_page_has_the_icon(path: str, staff: Client) -> None:
    page = staff.get(path).content.decode()

    assert re.search(r'<link rel="icon" href="/static/favicon[^"]*svg"', page)
