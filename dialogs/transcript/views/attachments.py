"""An image that a client attached to a message, for its owner only."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from dialogs.transcript.reads.attached import attached_image
from dialogs.transcript.views.common import dialog_or_404


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
