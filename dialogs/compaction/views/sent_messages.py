"""What the model saw, and what a compaction wrote in place of messages: pages, which htmx shows over the transcript."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from dialogs.compaction.reads.compaction_phases import strategy_label
from dialogs.compaction.reads.compaction_rows import written_in
from dialogs.context.reads.sent_messages import Seen, seen_after_run, seen_by_generation
from dialogs.models import Dialog
from dialogs.transcript.views.common import dialog_or_404
from health.models import CompactionRun

# Steps that are no strategy's.
ENDS = ("detection", "success")


@never_cache
@require_GET
def generation(request: HttpRequest, dialog_id: UUID, generation_id: int) -> HttpResponse:
    dialog = dialog_or_404(request, dialog_id)
    return _show(request, dialog, seen_by_generation(dialog, generation_id))


@never_cache
@require_GET
def run(request: HttpRequest, dialog_id: UUID, run_id: int) -> HttpResponse:
    dialog = dialog_or_404(request, dialog_id)
    return _show(request, dialog, seen_after_run(dialog, run_id))


def _show(request: HttpRequest, dialog: Dialog, seen: Seen | None) -> HttpResponse:
    if seen is None:
        raise Http404(_("There is nothing to show."))
    context = {"dialog": dialog, "seen": seen, "is_modal": bool(request.htmx)}  # type: ignore[attr-defined]
    return render(request, "dialogs/_seen.html" if context["is_modal"] else "dialogs/seen.html", context)


@never_cache
@require_GET
def summary(request: HttpRequest, dialog_id: UUID, run_id: int) -> HttpResponse:
    """Below the row of a compaction when it is unfolded; a page of its own without htmx."""
    dialog = dialog_or_404(request, dialog_id)
    found = get_object_or_404(CompactionRun, dialog=dialog, pk=run_id)
    changed = [step for step in found.steps if step["changed"] and step["phase"] not in ENDS]
    steps = [{**step, "label": strategy_label(step["phase"])} for step in changed]
    is_modal = bool(request.htmx)  # type: ignore[attr-defined]
    context = {"dialog": dialog, "run": found, "written": written_in(found), "steps": steps}
    template = "dialogs/_compaction_summary.html" if is_modal else "dialogs/compaction_summary.html"
    return render(request, template, context)
