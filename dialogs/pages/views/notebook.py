"""What a person does in the notebook: the same reminders and the same Taskdoc that the agent writes."""

from __future__ import annotations

from functools import partial
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_POST

from dialogs.agents.writes import reminders
from dialogs.models.dialog import Author
from dialogs.pages.views.dialog import act
from dialogs.transcript.views.common import dialog_or_404, number_or_zero


@require_POST
def add(request: HttpRequest, dialog_id: UUID) -> HttpResponse:
    dialog = dialog_or_404(request, dialog_id)
    content = request.POST.get("content", "")
    write = partial(reminders.add_reminder, dialog=dialog, content=content, author=Author.PERSON)
    return act(request, dialog, write, draft=content)


@require_POST
def edit(request: HttpRequest, dialog_id: UUID, number: int) -> HttpResponse:
    dialog = dialog_or_404(request, dialog_id)
    content = request.POST.get("content", "")
    write = partial(
        reminders.update_reminder,
        dialog=dialog,
        number=number,
        content=content,
        author=Author.PERSON,
        version=_version_read(request),
    )
    return act(request, dialog, write, draft=content)


@require_POST
def remove(request: HttpRequest, dialog_id: UUID, number: int) -> HttpResponse:
    dialog = dialog_or_404(request, dialog_id)
    return act(request, dialog, partial(reminders.remove_reminder, dialog=dialog, number=number))


@require_POST
def restore(request: HttpRequest, dialog_id: UUID, number: int) -> HttpResponse:
    dialog = dialog_or_404(request, dialog_id)
    return act(request, dialog, partial(reminders.restore_reminder, dialog=dialog, number=number))


@require_POST
def move(request: HttpRequest, dialog_id: UUID, number: int) -> HttpResponse:
    dialog = dialog_or_404(request, dialog_id)
    up = request.POST.get("direction") == "up"
    return act(request, dialog, partial(reminders.move_reminder, dialog=dialog, number=number, up=up))


@require_POST
def taskdoc(request: HttpRequest, dialog_id: UUID) -> HttpResponse:
    dialog = dialog_or_404(request, dialog_id)
    content = request.POST.get("content", "")
    write = partial(reminders.write_taskdoc, dialog=dialog, content=content, version=_version_read(request))
    return act(request, dialog, write, draft=content)


def _version_read(request: HttpRequest) -> int:
    """The version that the form was filled with. Zero is never current: a form without one overwrites nothing."""
    return number_or_zero(request.POST.get("version", ""))
