"""Pages about a dialog's context: the budget, the archive with search and bringing back, what the model saw, the texts
that a compaction wrote, and what the model would still know after one.
"""

from __future__ import annotations

from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache

from dialogs.common.errors import DialogError
from dialogs.compaction.reads import archive as selector
from dialogs.compaction.reads.budget import budget as budget_of
from dialogs.compaction.reads.compaction_rows import strategy_label, view_texts
from dialogs.compaction.reads.still_known import LEAST_LIMIT, MOST_LIMIT, still_known
from dialogs.compaction.writes import manual_compaction as service
from dialogs.context.reads import ModelContext, seen_after_run, seen_by_generation
from dialogs.context.writes import forget
from dialogs.models import Dialog
from dialogs.transcript.views import go_back, number_or_zero, of_dialog, person_of, staff_only, whole_text
from health.models import CompactionRun

QUERY_CHARS = 200
# Steps that are no strategy's.
ENDS = ("detection", "success")


@never_cache
@of_dialog("GET")
def budget(request: HttpRequest, dialog: Dialog) -> HttpResponse:
    """For the health panel; without scripts a page of its own."""
    template = "dialogs/_budget.html" if request.htmx else "dialogs/budget.html"  # type: ignore[attr-defined]
    may_forget = person_of(request).is_staff
    return render(request, template, {"dialog": dialog, "budget": budget_of(dialog), "may_forget": may_forget})


@staff_only
@of_dialog("POST")
def forget_window(request: HttpRequest, dialog: Dialog) -> HttpResponse:
    """Forget what use taught of the window of this dialog's LLM, for all who speak with it: only staff may."""
    forget(llm=dialog.llm, by=person_of(request))
    response = redirect("dialog_budget", dialog.pk)
    response.status_code = 303
    return response


@never_cache
@of_dialog("GET")
def archive(request: HttpRequest, dialog: Dialog) -> HttpResponse:
    query = request.GET.get("q", "").strip()[:QUERY_CHARS]
    page = max(1, number_or_zero(request.GET.get("page", "1")))
    found = selector.archive(dialog, page=page, query=query)
    here = reverse("dialog_archive_search", args=[dialog.pk])
    numbers = {"newer": page - 1 if page > 1 else None, "older": page + 1 if found.has_more else None}
    urls = {name: f"{here}?{urlencode({'q': query, 'page': number})}" for name, number in numbers.items() if number}
    return render(request, "dialogs/archive.html", {"dialog": dialog, "archive": found, "query": query, **urls})


@never_cache
@of_dialog("GET")
def text(request: HttpRequest, dialog: Dialog, message_id: int) -> HttpResponse:
    """The whole text of one message."""
    whole = selector.archived_text(dialog, message_id=message_id)
    if whole is None:
        raise Http404(_("There is no such message."))
    return whole_text(request, whole)


@of_dialog("POST")
def bring_back(request: HttpRequest, dialog: Dialog, message_id: int) -> HttpResponse:
    """Bring a message back. From the archive the way leads there again, with the news; to the transcript the socket
    brings what changed."""
    line = request.POST.get("text") or None
    is_fragment = bool(request.htmx)  # type: ignore[attr-defined]
    try:
        service.bring_back(dialog=dialog, message_id=message_id, text=line, by=person_of(request))
    except DialogError as error:
        if is_fragment:
            return HttpResponse(str(error), status=422, content_type="text/plain; charset=utf-8")
        messages.error(request, str(error))
    else:
        if is_fragment:
            return HttpResponse(status=204)
        messages.success(request, _("Brought back: the model sees it again. It can be undone in the dialog."))
    return go_back(request, fallback=reverse("dialog_archive_search", args=[dialog.pk]))


@never_cache
@of_dialog("GET")
def generation(request: HttpRequest, dialog: Dialog, generation_id: int) -> HttpResponse:
    return _show(request, dialog, seen_by_generation(dialog, generation_id))


@never_cache
@of_dialog("GET")
def run(request: HttpRequest, dialog: Dialog, run_id: int) -> HttpResponse:
    return _show(request, dialog, seen_after_run(dialog, run_id))


def _show(request: HttpRequest, dialog: Dialog, seen: ModelContext | None) -> HttpResponse:
    if seen is None:
        raise Http404(_("There is nothing to show."))
    context = {"dialog": dialog, "seen": seen, "is_modal": bool(request.htmx)}  # type: ignore[attr-defined]
    return render(request, "dialogs/_seen.html" if context["is_modal"] else "dialogs/seen.html", context)


@never_cache
@of_dialog("GET")
def summary(request: HttpRequest, dialog: Dialog, run_id: int) -> HttpResponse:
    """Below the row of a compaction when it is unfolded; a page of its own without htmx."""
    found = get_object_or_404(CompactionRun, dialog=dialog, pk=run_id)
    changed = [step for step in found.steps if step["changed"] and step["phase"] not in ENDS]
    steps = [{**step, "label": strategy_label(step["phase"])} for step in changed]
    is_modal = bool(request.htmx)  # type: ignore[attr-defined]
    context = {"dialog": dialog, "run": found, "written": view_texts(found), "steps": steps}
    template = "dialogs/_compaction_summary.html" if is_modal else "dialogs/compaction_summary.html"
    return render(request, template, context)


class Trial(forms.Form):
    compacted = forms.BooleanField(required=False)
    limit = forms.IntegerField(
        label=gettext_lazy("Limit (tokens)"), required=False, min_value=LEAST_LIMIT, max_value=MOST_LIMIT, localize=True
    )


@never_cache
@of_dialog("GET")
def still_known_page(request: HttpRequest, dialog: Dialog) -> HttpResponse:
    trial = Trial(request.GET)
    wanted = trial.cleaned_data if trial.is_valid() else {"compacted": False, "limit": None}
    found = still_known(dialog, compacted=bool(wanted["compacted"]), limit=wanted["limit"])
    context = {"dialog": dialog, "found": found, "trial": trial, "wanted": wanted}
    return render(request, "dialogs/still_known.html", context, status=200 if trial.is_valid() else 422)
