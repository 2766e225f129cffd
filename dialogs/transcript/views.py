"""Helpers for views: one's own dialog by its id, redirects back, staff only, parts of pages; and the name of a
message's speaker.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, cast
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import render, resolve_url
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from dialogs.models import Agent, Dialog, Message
from dialogs.models.message import MessageOrigin, Role
from dialogs.transcript.reads.dialogs import owned_dialog

View = Callable[..., HttpResponse]


def person_of(request: HttpRequest) -> User:
    """The signed-in user. Every page but those of signing in has one."""
    return cast("User", request.user)


def staff_only(view: View) -> View:
    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not person_of(request).is_staff:
            raise PermissionDenied
        return view(request, *args, **kwargs)

    return guarded


def dialog_or_404(request: HttpRequest, dialog_id: UUID) -> Dialog:
    """Another person's dialog is answered exactly as one that does not exist."""
    try:
        return owned_dialog(user=request.user, dialog_id=dialog_id)
    except Dialog.DoesNotExist as error:
        raise Http404(_("There is no such dialog.")) from error


def of_dialog(*methods: str) -> Callable[[View], View]:
    """Decorates a view of a dialog: checks the method, and passes the dialog in place of its id."""

    def decorated(view: View) -> View:
        @require_http_methods(methods)
        @wraps(view)
        def shown(request: HttpRequest, dialog_id: UUID, **rest: Any) -> HttpResponse:
            return view(request, dialog_or_404(request, dialog_id), **rest)

        return shown

    return decorated


def way_back(request: HttpRequest, *, fallback: str = "dialog_list") -> str:
    """The form's or link's `next`, if it is a path of this site; else a default page."""
    asked = request.POST.get("next") or request.GET.get("next") or ""
    safe = asked.startswith("/") and url_has_allowed_host_and_scheme(
        asked, {request.get_host()}, require_https=request.is_secure()
    )
    return asked if safe else resolve_url(fallback)


def go_back(request: HttpRequest, *, fallback: str = "dialog_list") -> HttpResponseRedirect:
    """See Other: an htmx request follows it too, and gets the fragment that it asked for."""
    response = HttpResponseRedirect(way_back(request, fallback=fallback))
    response.status_code = 303
    return response


def whole_text(request: HttpRequest, text: str) -> HttpResponse:
    """The whole of a text that a page shows shortened: as a fragment in its place, or as a page."""
    if request.htmx:  # type: ignore[attr-defined]
        return render(request, "dialogs/_call_result.html", {"text": text})
    return HttpResponse(text, content_type="text/plain; charset=utf-8")


def render_part(request: HttpRequest, part: str, context: Mapping[str, Any], *, title: str) -> HttpResponse:
    """A part of a page that htmx fetches; opened as a link it is a page of its own."""
    if request.htmx:  # type: ignore[attr-defined]
        return render(request, part, dict(context))
    return render(request, "learning/part.html", {**context, "part": part, "title": title})


def key_in(query: QueryDict, name: str) -> int:
    """A key that a database has room for, or 0."""
    number = number_or_zero(query.get(name, ""))
    return number if 0 < number < 2**63 else 0


def number_or_zero(text: str) -> int:
    """Zero for what is no number: the services refuse both alike."""
    try:
        return int(text)
    except ValueError:
        return 0


def trash_days() -> int:
    """How long the trash keeps a dialog, as people read it."""
    return max(1, round(settings.DOMINDS_TRASH_DAYS))


def speaker(message: Message, agent: Agent) -> str:
    """Who speaks, in the reader's language. A client's messages are by neither the reader nor the agent."""
    if message.role == Role.TOOL:
        return _("Result of a tool")
    if message.origin == MessageOrigin.CLIENT:
        return _client_speaker(message)
    if message.role == Role.ASSISTANT:
        return agent.name
    return _("You") if message.origin == MessageOrigin.TYPED else _("Automatic message")


def _client_speaker(message: Message) -> str:
    if message.role == Role.SYSTEM:
        return _("System message")
    if message.role == Role.ASSISTANT:
        return _("Assistant")
    name = message.parts.get("wire", {}).get("name", "")
    return _("User %(name)s") % {"name": name} if name else _("User")
