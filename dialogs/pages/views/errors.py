"""The pages for what cannot be read and for what should not happen. Django draws the others by itself."""

from __future__ import annotations

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse
from django.template.defaultfilters import filesizeformat
from django.template.loader import render_to_string
from django.utils.translation import gettext as _

from dialogs.pages.views.context import site


def server_error(request: HttpRequest) -> HttpResponse:
    """With the shell's own context only: a context processor may be what failed, or the database."""
    return HttpResponse(render_to_string("500.html", site(request)), status=500)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Says the limit when that was the reason; a fragment's script shows the bare sentence."""
    too_big = isinstance(exception, RequestDataTooBig)
    status = 413 if too_big else 400
    reason = _too_big() if too_big else _("The browser sent something that Dominds does not understand.")
    if "HX-Request" in request.headers:
        return HttpResponse(reason, status=status, content_type="text/plain; charset=utf-8")
    return HttpResponse(render_to_string("400.html", site(request) | {"reason": reason}), status=status)


def _too_big() -> str:
    limit = filesizeformat(settings.DATA_UPLOAD_MAX_MEMORY_SIZE)
    return _("That is more than %(limit)s, too much for one message. Go back and send it in parts.") % {"limit": limit}
