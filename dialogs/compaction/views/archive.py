"""The archive of a dialog's context: what the model no longer sees, searched, read, and brought back."""

from __future__ import annotations

from typing import cast
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from dialogs.common.errors import DialogError
from dialogs.compaction.reads import archive as selector
from dialogs.compaction.writes import bring_back as service
from dialogs.transcript.views.common import dialog_or_404, go_back, number_or_zero, whole_text

QUERY_CHARS = 200


@never_cache
@require_GET
def archive(request: HttpRequest, dialog_id: UUID) -> HttpResponse:
    dialog = dialog_or_404(request, dialog_id)
    query = request.GET.get("q", "").strip()[:QUERY_CHARS]
    page = max(1, number_or_zero(request.GET.get("page", "1")))
    found = selector.archive(dialog, page=page, query=query)
    here = reverse("dialog_archive_search", args=[dialog.pk])
    numbers = {"newer": page - 1 if page > 1 else None, "older": page + 1 if found.has_more else None}
    urls = {name: f"{here}?{urlencode({'q': query, 'page': number})}" for name, number in numbers.items() if number}
    return render(request, "dialogs/archive.html", {"dialog": dialog, "archive": found, "query": query, **urls})


@never_cache
@require_GET
def text(request: HttpRequest, dialog_id: UUID, message_id: int) -> HttpResponse:
    """All of one message."""
    whole = selector.archived_text(dialog_or_404(request, dialog_id), message_id=message_id)
    if whole is None:
        raise Http404(_("There is no such message."))
    return whole_text(request, whole)


@require_POST
def bring_back(request: HttpRequest, dialog_id: UUID, message_id: int) -> HttpResponse:
    """From the archive: there again, with the news. From the transcript: the socket brings what changed."""
    dialog = dialog_or_404(request, dialog_id)
    line = request.POST.get("text") or None
    is_fragment = bool(request.htmx)  # type: ignore[attr-defined]
    try:
        service.bring_back(dialog=dialog, message_id=message_id, text=line, by=cast("User", request.user))
    except DialogError as error:
        if is_fragment:
            return HttpResponse(str(error), status=422, content_type="text/plain; charset=utf-8")
        messages.error(request, str(error))
    else:
        if is_fragment:
            return HttpResponse(status=204)
        messages.success(request, _("Brought back: the model sees it again. It can be undone in the dialog."))
    return go_back(request, fallback=reverse("dialog_archive_search", args=[dialog.pk]))
