"""What a person does in the notebook: the same reminders and the same Taskdoc that the agent writes."""

from __future__ import annotations

from functools import partial
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_POST

from dialogs.agents import writes
from dialogs.models.dialog import Author
from dialogs.pages.views.dialog import act, action
from dialogs.transcript.views import dialog_or_404, number_or_zero


@require_POST
def add(request: HttpRequest, dialog_id: UUID) -> HttpResponse:
    dialog = dialog_or_404(request, dialog_id)
    content = request.POST.get("content", "")
    write = partial(writes.add_reminder, dialog=dialog, content=content, author=Author.PERSON)
    return act(request, dialog, write, draft=content)


@require_POST
def edit(request: HttpRequest, dialog_id: UUID, number: int) -> HttpResponse:
    dialog = dialog_or_404(request, dialog_id)
    content = request.POST.get("content", "")
    write = partial(
        writes.update_reminder,
        dialog=dialog,
        number=number,
        content=content,
        author=Author.PERSON,
        version=_version_read(request),
    )
    return act(request, dialog, write, draft=content)


remove = action(writes.remove_reminder)
restore = action(writes.restore_reminder)


@require_POST
def move(request: HttpRequest, dialog_id: UUID, number: int) -> HttpResponse:
    dialog = dialog_or_404(request, dialog_id)
    up = request.POST.get("direction") == "up"
    return act(request, dialog, partial(writes.move_reminder, dialog=dialog, number=number, up=up))


@require_POST
def taskdoc(request: HttpRequest, dialog_id: UUID) -> HttpResponse:
    dialog = dialog_or_404(request, dialog_id)
    content = request.POST.get("content", "")
    write = partial(writes.write_taskdoc, dialog=dialog, content=content, version=_version_read(request))
    return act(request, dialog, write, draft=content)


def _version_read(request: HttpRequest) -> int:
    """The version that the form was filled with. Zero is never current: a form without one overwrites nothing."""
    return number_or_zero(request.POST.get("version", ""))
