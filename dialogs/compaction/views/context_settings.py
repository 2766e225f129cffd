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
from dialogs.compaction.settings.checking import check
from dialogs.compaction.settings.importing import read_yaml
from dialogs.compaction.settings.page import Asked, context_of
from dialogs.compaction.settings.what_if import what_if
from dialogs.compaction.writes.context_settings import SettingsOutdated, save_settings
from dialogs.transcript.views import person_of, staff_only
from health import rewards
from health.services import record_reward_export


@staff_only
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def context_settings(request: HttpRequest) -> HttpResponse:
    """The form. A POST saves it, or presses one of its buttons, which changes nothing but the page."""
    if request.method != "POST":
        return _page(request, Asked.stored())
    asked = Asked.posted(request.POST)
    action = request.POST.get("do", "save")
    if action == "save":
        return _save(request, asked)
    if action == "what-if":
        return _what_if(request, asked)
    return _page(request, asked.after(action, request.POST.get("chain_add", "")))


def _save(request: HttpRequest, asked: Asked) -> HttpResponse:
    checked = check(asked.sheet)
    if checked.config is None:
        return _page(request, asked, errors=checked.errors, status=422)
    try:
        changed = save_settings(
            config=checked.config,
            pruning_agent=asked.agent,
            by=person_of(request),
            version=asked.version,
            own=asked.own,
            when_full=asked.when_full,
        )
    except SettingsOutdated as error:
        # Saving once more, with their changes known, is meant.
        return _page(request, asked.on_newest(), outdated=str(error), status=409)
    count = len(changed)
    said = ngettext("%(count)s setting is changed.", "%(count)s settings are changed.", count) % {"count": count}
    messages.success(request, said if changed else _("Nothing has changed."))
    return HttpResponseRedirect(reverse("context_settings"))


def _what_if(request: HttpRequest, asked: Asked) -> HttpResponse:
    checked = check(asked.sheet)
    if checked.config is None:
        return _page(request, asked, errors=checked.errors, status=422)
    return _page(request, asked, happenings=list(what_if(checked.config, owner=person_of(request))))


@staff_only
@require_POST
def bring(request: HttpRequest) -> HttpResponse:
    """Fill the form with a file's settings. What that changes is shown; saving is another click."""
    file = request.FILES.get("file")
    found = read_yaml(file.read()) if file else []
    if isinstance(found, list):
        return _page(request, Asked.stored(), problems=found, no_file=file is None, status=422)
    return _page(request, Asked.of(found.config, found.agents, found.when_full), is_imported=True)


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


def _page(request: HttpRequest, asked: Asked, *, status: int = 200, **context: Any) -> HttpResponse:
    """For htmx the form and what was found out with it."""
    template = "_context_settings.html" if request.htmx else "context_settings.html"  # type: ignore[attr-defined]
    everything = context_of(asked, errors=context.pop("errors", {}), page=request.GET.get("page", "")) | context
    return render(request, f"dialogs/{template}", everything, status=status)
