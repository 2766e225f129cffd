"""The budget in the health panel, fetched when the panel is looked at: estimating costs more than showing."""

from __future__ import annotations

from typing import cast
from uuid import UUID

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from dialogs.compaction.reads.budget import budget as budget_of
from dialogs.context.writes.windows import forget
from dialogs.transcript.views.common import dialog_or_404, staff_only


@never_cache
@require_GET
def budget(request: HttpRequest, dialog_id: UUID) -> HttpResponse:
    """Into the panel; without JavaScript a page of its own."""
    dialog = dialog_or_404(request, dialog_id)
    template = "dialogs/_budget.html" if request.htmx else "dialogs/budget.html"  # type: ignore[attr-defined]
    may_forget = cast("User", request.user).is_staff
    return render(request, template, {"dialog": dialog, "budget": budget_of(dialog), "may_forget": may_forget})


@staff_only
@require_POST
def forget_window(request: HttpRequest, dialog_id: UUID) -> HttpResponse:
    """Forget what use taught of the window of this dialog's LLM, for all who speak with it: only staff may."""
    dialog = dialog_or_404(request, dialog_id)
    forget(llm=dialog.llm, by=cast("User", request.user))
    response = redirect("dialog_budget", dialog.pk)
    response.status_code = 303
    return response
