"""The page for what should not happen. Django draws the other error pages in the shell by itself."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string

from dialogs.views.context import site


def server_error(request: HttpRequest) -> HttpResponse:
    """With the shell's own context only: a context processor may be what failed, or the database."""
    return HttpResponse(render_to_string("500.html", site(request)), status=500)
