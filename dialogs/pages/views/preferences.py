"""How a person likes the site. The language is Django's own view; see `dialogs.pages.urls`."""

from __future__ import annotations

from typing import cast

from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from dialogs.compaction.reads.display import display_of
from dialogs.compaction.writes.display import set_display
from dialogs.pages.forms import CompactionDisplayForm
from dialogs.pages.views.context import THEME_COOKIE, THEMES
from dialogs.transcript.views.common import go_back, way_back

A_YEAR = 365 * 24 * 60 * 60


@login_not_required
@require_POST
def set_theme(request: HttpRequest) -> HttpResponse:
    """Kept in a cookie, so that the next page is drawn right from its first byte."""
    response = go_back(request)
    theme = request.POST.get("theme", "")
    if theme in THEMES:
        response.set_cookie(
            THEME_COOKIE, theme, max_age=A_YEAR, samesite="Lax", httponly=True, secure=request.is_secure()
        )
    return response


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def compaction_display(request: HttpRequest) -> HttpResponse:
    """Whether, how and for how long the card of compaction is shown to this person."""
    user = cast("User", request.user)
    is_sent = request.method == "POST"
    form = CompactionDisplayForm(request.POST if is_sent else None, instance=display_of(user.pk))
    if is_sent and form.is_valid():
        set_display(user=user, **form.cleaned_data)
        messages.success(request, _("Saved."))
        return go_back(request)
    context = {"form": form, "back": way_back(request)}
    return render(request, "dialogs/compaction_display.html", context, status=422 if is_sent else 200)
