"""The button that adds a sample, and the buttons of its tour."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from dialogs.common.errors import DialogError
from dialogs.models import Dialog
from dialogs.models.dialog import Stop
from dialogs.sample.reads import own_sample, player
from dialogs.sample.writes import begin_sample, close, go_on
from dialogs.transcript.views import of_dialog, person_of


@require_POST
def begin(request: HttpRequest) -> HttpResponse:
    """Go to this person's sample, or add one."""
    user = person_of(request)
    if dialog := own_sample(user):
        return redirect("dialog", dialog_id=dialog.pk)
    agent = player()
    if agent is None:
        messages.error(request, _("A sample needs a model that answers. Connect a server first."))
        return redirect("dialog_new")
    return redirect("dialog", dialog_id=begin_sample(owner=user, agent=agent).pk)


@of_dialog("POST")
def step(request: HttpRequest, dialog: Dialog) -> HttpResponse:
    """Go to the next stop, or close the tour. The socket updates the page, unless the next stop is on another page."""
    stop, is_fragment = request.POST.get("stop", ""), bool(request.htmx)  # type: ignore[attr-defined]
    try:
        if "close" in request.POST:
            close(dialog=dialog)
            then = Stop.CLOSED
        else:
            then = go_on(dialog=dialog, stop=stop, by=person_of(request))
    except DialogError as error:
        if is_fragment:
            return HttpResponse(str(error), status=422, content_type="text/plain; charset=utf-8")
        messages.error(request, str(error))
        then = Stop(dialog.tour)
    page = "dialog_archive_search" if then == Stop.ARCHIVE else "dialog"
    there = reverse(page, args=[dialog.pk])
    if not is_fragment:
        return redirect(there)
    is_elsewhere = Stop.ARCHIVE in (stop, then)
    return HttpResponse(status=204, headers={"HX-Redirect": there} if is_elsewhere else {})
