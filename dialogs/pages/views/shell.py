"""The context of every page (theme, languages, version, access to the admin), display settings, and the error pages
400, 500 and 507.

The context does not read the database, so that error pages work without it. The language is set by Django's own view;
see `dialogs.pages.urls`.
"""

from __future__ import annotations

import sys
from typing import Any, ClassVar

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import RequestDataTooBig, TooManyFieldsSent
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.defaultfilters import filesizeformat
from django.template.loader import render_to_string
from django.utils.functional import Promise, SimpleLazyObject
from django.utils.translation import get_language, get_language_info, pgettext_lazy
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from dialogs.common.errors import is_full
from dialogs.compaction.reads.compaction_card import display_of
from dialogs.compaction.writes.context_settings import set_display
from dialogs.models import CompactionDisplay
from dialogs.transcript.views import go_back, person_of, way_back
from dominds import __version__

THEME_COOKIE = "dominds_theme"
THEMES: dict[str, Promise] = {
    "auto": pgettext_lazy("theme", "Like the system"),
    "light": pgettext_lazy("theme", "Light"),
    "dark": pgettext_lazy("theme", "Dark"),
}
A_YEAR = 365 * 24 * 60 * 60


def theme_of(request: HttpRequest) -> str:
    chosen = request.COOKIES.get(THEME_COOKIE, "")
    return chosen if chosen in THEMES else "auto"


def site(request: HttpRequest) -> dict[str, Any]:
    """The context processor named in settings."""
    return {
        "theme": theme_of(request),
        "themes": THEMES,
        "language": get_language() or settings.LANGUAGE_CODE,
        # Each language by its own name, for people who cannot read the present one.
        "languages": [(code, get_language_info(code)["name_local"]) for code, _name in settings.LANGUAGES],
        "version": __version__,
        # How commands are called on this installation.
        "program": settings.COMMAND,
        "can_admin": SimpleLazyObject(lambda: _can_admin(request)),
    }


def _can_admin(request: HttpRequest) -> bool:
    """Lazy, since it reads the session and so the database."""
    user = getattr(request, "user", None)
    return bool(user and user.is_active and user.is_staff)


def server_error(request: HttpRequest) -> HttpResponse:
    """The page with the shell's own context only: a context processor may be what failed, or the database.

    507 where that is full: scripts have words of their own for it.
    """
    status = 507 if is_full(sys.exc_info()[1]) else 500
    return HttpResponse(render_to_string(f"{status}.html", site(request)), status=status)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Names the limit if that was the reason. For htmx only the sentence, which a script shows."""
    status, reason = _refused(exception)
    if "HX-Request" in request.headers:
        return HttpResponse(reason, status=status, content_type="text/plain; charset=utf-8")
    return HttpResponse(render_to_string("400.html", site(request) | {"reason": reason}), status=status)


def _refused(exception: Exception) -> tuple[int, str]:
    if isinstance(exception, RequestDataTooBig):
        return 413, _too_big()
    if isinstance(exception, TooManyFieldsSent):
        most = f"{settings.DATA_UPLOAD_MAX_NUMBER_FIELDS:,}"
        return 413, _("The form has more than %(most)s fields. Nothing is saved.") % {"most": most}
    return 400, _("The browser sent something that Dominds does not understand.")


def _too_big() -> str:
    limit = filesizeformat(settings.DATA_UPLOAD_MAX_MEMORY_SIZE)
    return _("That is more than %(limit)s, too much for one message. Go back and send it in parts.") % {"limit": limit}


@login_not_required
@require_POST
def set_theme(request: HttpRequest) -> HttpResponse:
    """Stored in a cookie, so that the server renders the next page with it."""
    response = go_back(request)
    theme = request.POST.get("theme", "")
    if theme in THEMES:
        response.set_cookie(
            THEME_COOKIE, theme, max_age=A_YEAR, samesite="Lax", httponly=True, secure=request.is_secure()
        )
    return response


class CompactionDisplayForm(forms.ModelForm):
    """How a person wants to see compactions; the service writes what it has checked."""

    class Meta:
        model = CompactionDisplay
        fields = ("show", "detail", "auto_hide_seconds", "highlight_p1", "review_drafts")
        widgets: ClassVar[dict[str, forms.Widget]] = {
            "auto_hide_seconds": forms.NumberInput(attrs={"type": "range", "min": 1, "max": 10})
        }


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def compaction_display(request: HttpRequest) -> HttpResponse:
    """Whether, how and for how long the card of compaction is shown to this person."""
    user = person_of(request)
    is_sent = request.method == "POST"
    form = CompactionDisplayForm(request.POST if is_sent else None, instance=display_of(user.pk))
    if is_sent and form.is_valid():
        set_display(user=user, **form.cleaned_data)
        messages.success(request, _("Saved."))
        return go_back(request)
    context = {"form": form, "back": way_back(request)}
    return render(request, "dialogs/compaction_display.html", context, status=422 if is_sent else 200)
