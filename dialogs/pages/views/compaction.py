"""A person's actions on the context: compact, begin afresh, decide about previews, undo and redo; and the page of
cleanup tasks.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from dialogs.common.errors import DialogError
from dialogs.compaction.writes import manual_compaction, view_changes
from dialogs.compaction.writes.compaction import cancel_run
from dialogs.compaction.writes.manual_compaction import discard as discard_draft
from dialogs.compaction.writes.manual_compaction import edit_draft, report_and_continue
from dialogs.models import Dialog, Message
from dialogs.pages.views.dialog import act, action, sent, sheet
from dialogs.pages.views.manage import confirm
from dialogs.transcript.views import number_or_zero, of_dialog, person_of
from dialogs.turns.reads.events import assignable, tasks_for
from dialogs.turns.writes import events as service
from dialogs.turns.writes.events import decline, dismiss

TEXT = "text-"
_RESET_QUESTION: dict[str, Promise | str] = {
    "question": gettext_lazy("Reset the agent's chat?"),
    "words": gettext_lazy(
        "The agent begins afresh with a handover: its first request, your last message, what you pinned, and a short "
        "account of the rest. All messages stay readable here, and you can undo it."
    ),
    "label": gettext_lazy("Reset Agent Chat"),
    "button": "button-primary",
}

_MILESTONE_QUESTION = _RESET_QUESTION | {"question": gettext_lazy("The task is done. Begin afresh?")}


@never_cache
@of_dialog("GET", "HEAD", "POST")
def now(request: HttpRequest, dialog: Dialog) -> HttpResponse:
    """The form, and its POST."""
    if request.method != "POST":
        return _form(request, dialog)
    focus, preview = request.POST.get("focus", ""), "preview" in request.POST
    begin = partial(manual_compaction.request, dialog=dialog, by=person_of(request), focus=focus, preview=preview)
    return sent(request, dialog, begin, partial(_form, request, dialog, focus=focus, preview=preview))


def _form(request: HttpRequest, dialog: Dialog, **typed: Any) -> HttpResponse:
    return sheet(
        request,
        dialog,
        "dialogs/_compact.html",
        question=_("Compact the context"),
        focus_chars=manual_compaction.FOCUS_CHARS,
        present=manual_compaction.request_size(dialog),
        **typed,
    )


@of_dialog("POST")
def up_to(request: HttpRequest, dialog: Dialog, message_id: int) -> HttpResponse:
    message = get_object_or_404(Message, dialog=dialog, pk=message_id)
    begin = partial(manual_compaction.request, dialog=dialog, by=person_of(request), up_to=message)
    return act(request, dialog, begin)


@of_dialog("GET", "HEAD", "POST")
def reset(request: HttpRequest, dialog: Dialog) -> HttpResponse:
    if request.method != "POST":
        return confirm(request, dialog, _MILESTONE_QUESTION if "milestone" in request.GET else _RESET_QUESTION)
    return act(request, dialog, partial(manual_compaction.reset, dialog=dialog, by=person_of(request)))


cancel = action(cancel_run)
discard = action(discard_draft)


@of_dialog("POST")
def edit(request: HttpRequest, dialog: Dialog, run_id: int) -> HttpResponse:
    return act(request, dialog, partial(edit_draft, dialog=dialog, run_id=run_id, texts=_texts(request.POST)))


@of_dialog("POST")
def apply(request: HttpRequest, dialog: Dialog, run_id: int) -> HttpResponse:
    """Apply a draft, with the texts of the form, if they were sent along."""
    texts = _texts(request.POST)

    def edit_and_apply() -> None:
        if texts:
            edit_draft(dialog=dialog, run_id=run_id, texts=texts)
        view_changes.apply_draft(dialog=dialog, run_id=run_id, by=person_of(request))

    return act(request, dialog, edit_and_apply)


def _texts(sent: QueryDict) -> dict[int, str]:
    """The fields `text-3`, … by their places."""
    places = [name.removeprefix(TEXT) for name in sent if name.startswith(TEXT)]
    return {number_or_zero(place): str(sent[f"{TEXT}{place}"]) for place in places if place.isdecimal()}


undo = action(view_changes.undo, by=True)
redo = action(view_changes.redo, by=True)


MOST_CLOSED = 20


@never_cache
@require_safe
def cleanup(request: HttpRequest) -> HttpResponse:
    person, tasks = person_of(request), tasks_for(person_of(request))
    context = {
        "tasks": tasks.filter(closed_at=None),
        "closed": tasks.exclude(closed_at=None).order_by("-closed_at")[:MOST_CLOSED],
        "staff": User.objects.filter(is_staff=True, is_active=True).order_by("username"),
        "person": person,
    }
    return render(request, "learning/cleanup.html", context)


@require_POST
def change(request: HttpRequest, task_id: int) -> HttpResponse:
    """Save the ticked steps and the assignee; "close" also ends the task. Fields that are not sent stay as they are."""
    person, form = person_of(request), request.POST
    task = tasks_for(person).filter(pk=task_id).first()
    if task is None:
        raise Http404(_("There is no such task."))
    closes = form.get("do") == "close"
    try:
        service.change_task(
            task=task,
            by=person,
            shown=number_or_zero(form["shown"]) or None if "shown" in form else task.assignee_id,
            assignee=assignable(task).filter(pk=number_or_zero(form.get("assignee", ""))).first(),
            done=form.getlist("done") if "checklist" in form else None,
            closes=closes,
        )
        messages.success(request, _("The task is closed.") if closes else _("Saved."))
    except DialogError as error:
        messages.error(request, str(error))
    return redirect("cleanup")


no_fresh_start = action(decline)
no_loop = action(dismiss)
report = action(report_and_continue, by=True)
