"""The state of a dialog's context as JSON, for its owner's programs; and seed 3's two readings of it."""

from __future__ import annotations

from dataclasses import asdict
from uuid import UUID

from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from dialogs.selectors.context_state import context_state
from dialogs.selectors.task_snapshot import context_stats, task_snapshot
from dialogs.views.common import dialog_or_404
from health.compaction.snapshot import TaskSnapshot
from health.compaction.snapshot import as_json as snapshot_as_json


@never_cache
@require_GET
def as_json(request: HttpRequest, dialog_id: UUID) -> JsonResponse:
    return JsonResponse(asdict(context_state(dialog_or_404(request, dialog_id))))


@never_cache
@require_GET
def stats(request: HttpRequest, dialog_id: UUID) -> JsonResponse:
    """The number of tokens is an estimate."""
    found = context_stats(dialog_or_404(request, dialog_id))
    return JsonResponse(
        {
            "messageCount": found.message_count,
            "estimatedTokens": found.estimated_tokens,
            "hasSnapshot": found.has_snapshot,
        }
    )


@never_cache
@require_GET
def snapshot(request: HttpRequest, dialog_id: UUID) -> JsonResponse:
    """An empty one where no task has begun: `hasSnapshot` of the statistics tells them apart."""
    return JsonResponse(snapshot_as_json(task_snapshot(dialog_or_404(request, dialog_id)) or TaskSnapshot()))
