"""The state of a dialog's context as JSON, for its owner's programs."""

from __future__ import annotations

from dataclasses import asdict
from uuid import UUID

from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from dialogs.selectors.context_state import context_state
from dialogs.views.common import dialog_or_404


@never_cache
@require_GET
def as_json(request: HttpRequest, dialog_id: UUID) -> JsonResponse:
    return JsonResponse(asdict(context_state(dialog_or_404(request, dialog_id))))
