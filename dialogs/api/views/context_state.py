"""The state of a dialog's context as JSON, for its owner's programs; and two readings of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import wraps
from uuid import UUID

from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from dialogs.api.auth import authenticate, require_read, secret_in
from dialogs.api.errors import ApiError
from dialogs.compaction.reads.context_state import context_state
from dialogs.context.reads.task_snapshot import context_stats, present_messages, snapshot_for_programs
from dialogs.transcript.views import dialog_or_404
from health.compaction.snapshot import TaskSnapshot
from health.compaction.snapshot import as_json as snapshot_as_json

View = Callable[[HttpRequest, UUID], HttpResponseBase]


def for_programs(view: View) -> View:
    """Read by a dialog's owner who is signed in, or with one of their API keys."""

    @wraps(view)
    def answered(request: HttpRequest, dialog_id: UUID) -> HttpResponseBase:
        if secret := secret_in({name.lower(): value for name, value in request.headers.items()}):
            try:
                key = authenticate(secret)
                require_read(key)
                request.user = key.owner
            except ApiError as error:
                return JsonResponse(error.as_json(), status=error.status, headers=error.headers)
        elif not request.user.is_authenticated:
            return redirect_to_login(request.get_full_path())
        return view(request, dialog_id)

    return login_not_required(never_cache(require_GET(answered)))


@for_programs
def as_json(request: HttpRequest, dialog_id: UUID) -> JsonResponse:
    return JsonResponse(asdict(context_state(dialog_or_404(request, dialog_id))))


@for_programs
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


@for_programs
def snapshot(request: HttpRequest, dialog_id: UUID) -> JsonResponse:
    """An empty one where no task has begun: `hasSnapshot` of the statistics tells them apart."""
    return JsonResponse(snapshot_as_json(snapshot_for_programs(dialog_or_404(request, dialog_id)) or TaskSnapshot()))


@for_programs
def messages(request: HttpRequest, dialog_id: UUID) -> JsonResponse:
    """What the model would be sent now, message by message: its size (≈), and how important its kind makes it."""
    return JsonResponse({"messages": [asdict(one) for one in present_messages(dialog_or_404(request, dialog_id))]})
