"""The settings page for staff: how contexts are limited and compacted, for everybody."""

from __future__ import annotations

import json
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import content_disposition_header
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dialogs.compaction.reads.context_settings import exported
from dialogs.compaction.settings.form import SettingsForm
from dialogs.compaction.settings.importing import read_yaml
from dialogs.compaction.settings.page import context_of, page_texts
from dialogs.compaction.settings.texts import Texts, after, typed
from dialogs.compaction.settings.what_if import what_if
from dialogs.compaction.writes.context_settings import SettingsOutdated, save_settings
from dialogs.transcript.views import person_of, staff_only
from health import rewards
from health.compaction.config import ContextConfig
from health.configured import context_config
from health.configured import context_settings as stored_settings
from health.services import record_reward_export


@staff_only
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def context_settings(request: HttpRequest) -> HttpResponse:
    """The form. A POST saves it, or presses one of its buttons, which changes nothing but the page."""
    if request.method != "POST":
        return _page(request, SettingsForm(page_texts(context_config())))
    texts, action = typed(request.POST), request.POST.get("do", "save")
    if action not in {"save", "what-if"}:
        return _shown(request, *after(texts, action, request.POST.get("chain_add", "")))
    form = SettingsForm(texts, is_sent=True)
    if not form.is_valid() or form.config is None:
        return _page(request, form, status=422)
    if action == "save":
        return _save(request, form, form.config)
    return _page(request, form, happenings=list(what_if(form.config, owner=person_of(request))))


def _save(request: HttpRequest, form: SettingsForm, config: ContextConfig) -> HttpResponse:
    try:
        changed = save_settings(
            config=config,
            pruning_agent=form.cleaned_data["pruning_agent"],
            by=person_of(request),
            version=form.cleaned_data["version"] or 0,
            own=form.cleaned_data["agents"],
            when_full=form.chosen_when_full,
        )
    except SettingsOutdated as error:
        # Saving once more, with their changes known, is meant.
        newest = {**form.data, "version": stored_settings().version}
        return _shown(request, newest, outdated=str(error), status=409)
    count = len(changed)
    said = ngettext("%(count)s setting is changed.", "%(count)s settings are changed.", count) % {"count": count}
    messages.success(request, said if changed else _("Nothing has changed."))
    return HttpResponseRedirect(reverse("context_settings"))


@staff_only
@require_POST
def bring(request: HttpRequest) -> HttpResponse:
    """Fill the form with a file's settings. What that changes is shown; saving is another click."""
    file = request.FILES.get("file")
    found = read_yaml(file.read()) if file else []
    if isinstance(found, list):
        form = SettingsForm(page_texts(context_config()))
        return _page(request, form, problems=found, no_file=file is None, status=422)
    return _shown(request, page_texts(found.config, found.agents, found.when_full), is_imported=True)


@staff_only
@never_cache
@require_safe
def take_out(request: HttpRequest) -> HttpResponse:
    """The settings in force as YAML, as a file of settings is written."""
    disposition = content_disposition_header(as_attachment=True, filename="context-settings.yaml")
    headers = {"Content-Disposition": disposition or ""}
    return HttpResponse(exported(), content_type="application/yaml", headers=headers)


@staff_only
@never_cache
@require_POST
def take_out_rewards(request: HttpRequest) -> HttpResponse:
    """What compactions were worth, a line of JSON for each, as `manage.py rewards export` prints it."""
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rewards.rows()]
    record_reward_export(lines=len(lines), by=person_of(request))
    headers = {"Content-Disposition": 'attachment; filename="rewards.jsonl"'}
    return HttpResponse("".join(lines), content_type="application/jsonl; charset=utf-8", headers=headers)


def _shown(request: HttpRequest, texts: Texts, focus: str = "", **context: Any) -> HttpResponse:
    """The page with these texts, and what saving them would change. What is wrong with them is told by saving."""
    return _page(request, SettingsForm(texts), checked=SettingsForm(texts, is_sent=True), focus=focus, **context)


def _page(
    request: HttpRequest,
    form: SettingsForm,
    *,
    checked: SettingsForm | None = None,
    focus: str = "",
    status: int = 200,
    **context: Any,
) -> HttpResponse:
    """For htmx the form and what was found out with it."""
    template = "_context_settings.html" if request.htmx else "context_settings.html"  # type: ignore[attr-defined]
    drawn = context_of(form, checked=checked or form, focus=focus, page=request.GET.get("page", ""))
    return render(request, f"dialogs/{template}", drawn | context, status=status)
