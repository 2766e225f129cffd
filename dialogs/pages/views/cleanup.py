"""Tasks to clean contexts up: the list, and who does one, what of it is done, and its end. Also offers declined,
and "Report & Continue"."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from dialogs.compaction.writes.manual_compaction import report_and_continue
from dialogs.pages.views.dialog import action
from dialogs.transcript.views import number_or_zero, person_of
from dialogs.turns.reads.events import assignable, tasks_for
from dialogs.turns.writes import events as service
from dialogs.turns.writes.events import decline
from dialogs.turns.writes.loops import dismiss

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
    """Save what is ticked and who does it; "close" also ends the task."""
    person = person_of(request)
    task = tasks_for(person).filter(pk=task_id, closed_at=None).first()
    if task is None:
        raise Http404(_("There is no such task."))
    assignee = assignable(task).filter(pk=number_or_zero(request.POST.get("assignee", ""))).first()
    # What a form without the checklist does not say stays.
    done = request.POST.getlist("done") if "checklist" in request.POST else task.done
    service.change_task(task=task, assignee=assignee, done=done)
    if request.POST.get("do") == "close":
        service.close_task(task=task, by=person)
        messages.success(request, _("The task is closed."))
    else:
        messages.success(request, _("Saved."))
    return redirect("cleanup")


no_fresh_start = action(decline)
no_loop = action(dismiss)
report = action(report_and_continue, by=True)
