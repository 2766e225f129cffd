"""What a transcript leaves out until it is asked for: the messages of an earlier course, the whole result of a call."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from dialogs.pages.reads.transcript import course_page
from dialogs.transcript.reads.attached import attached_image
from dialogs.transcript.reads.courses import current_course, earlier_course
from dialogs.transcript.views.common import dialog_or_404, number_or_zero, whole_text
from dialogs.turns.reads.call_rows import whole_result


@never_cache
@require_GET
def course(request: HttpRequest, dialog_id: UUID, number: int) -> HttpResponse:
    """A page of an earlier course, below its heading in the transcript; without JavaScript a page of its own."""
    dialog = dialog_or_404(request, dialog_id)
    now = current_course(dialog)
    if now is not None and now.number == number:
        return redirect("dialog", dialog.pk)
    found = earlier_course(dialog, number=number)
    if found is None:
        raise Http404(_("There is no such course."))
    page = max(1, number_or_zero(request.GET.get("page", "1")))
    rows, more = course_page(dialog, course_id=found.course.pk, last_id=found.last_id, page=page)
    context = {"dialog": dialog, "earlier": found, "rows": rows, "page": page, "next_page": page + 1 if more else None}
    is_fragment = bool(request.htmx)  # type: ignore[attr-defined]
    return render(request, "dialogs/_course_rows.html" if is_fragment else "dialogs/course.html", context)


@never_cache
@require_GET
def result(request: HttpRequest, dialog_id: UUID, call_id: int) -> HttpResponse:
    """All that a tool brought."""
    dialog = dialog_or_404(request, dialog_id)
    whole = whole_result(dialog, call_id=call_id)
    if whole is None:
        raise Http404(_("There is no such tool call."))
    return whole_text(request, whole)


@require_GET
def image(request: HttpRequest, dialog_id: UUID, message_id: int, place: int) -> HttpResponse:
    """A message never changes, so the browser may keep it."""
    dialog = dialog_or_404(request, dialog_id)
    found = attached_image(dialog, message_id=message_id, place=place)
    if found is None:
        raise Http404(_("There is no such image."))
    media_type, content = found
    headers = {"Cache-Control": "private, max-age=86400, immutable"}
    return HttpResponse(content, content_type=media_type, headers=headers)
