"""How a browser likes the site. The language is Django's own view; see `dialogs.urls`."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_POST

from dialogs.views.common import go_back
from dialogs.views.context import THEME_COOKIE, THEMES

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
