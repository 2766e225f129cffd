"""The views of the settings page for staff: the form, import and export as YAML, export of the log of rewards, and an
estimate of what unsaved settings would have done to stored dialogs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from time import monotonic
from types import MappingProxyType
from typing import Any

import yaml
from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.http import content_disposition_header
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dialogs.compaction.reads.compaction_rows import phase
from dialogs.compaction.reads.context_settings import (
    PRUNING_AGENT,
    agents_with_own_settings,
    ceilings,
    changes_page,
    exported,
    when_full,
)
from dialogs.compaction.settings.checking import odd_limits, pruning_problem, read_yaml
from dialogs.compaction.settings.fields import CHAIN, Texts, after, texts_of, typed
from dialogs.compaction.settings.form import SettingsForm
from dialogs.compaction.settings.inputs import Input
from dialogs.compaction.writes.context_settings import SettingsOutdated, changes, changes_of_agents, save_settings
from dialogs.context.estimate import growth_of
from dialogs.llms.guard import Guard, guard_of
from dialogs.llms.guard import config_of as config_of_dialog
from dialogs.llms.words import traced
from dialogs.models import Dialog
from dialogs.transcript.reads.dialogs import list_dialogs
from dialogs.transcript.views import person_of, staff_only
from health import reward_log
from health.compaction.config import TRIM, ContextConfig
from health.compaction.strategies import REGISTRY
from health.compaction.terms.configuration import AGENTS, WHEN_FULL
from health.compaction.terms.pressure import tokens
from health.configured import config_of, context_config
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
def import_settings(request: HttpRequest) -> HttpResponse:
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
    """Export the settings in force as YAML."""
    disposition = content_disposition_header(as_attachment=True, filename="context-settings.yaml")
    headers = {"Content-Disposition": disposition or ""}
    return HttpResponse(exported(), content_type="application/yaml", headers=headers)


@staff_only
@never_cache
@require_POST
def take_out_rewards(request: HttpRequest) -> HttpResponse:
    """Export the log of rewards as JSONL, as `manage.py rewards export` does."""
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in reward_log.rows()]
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


NOTHING: Mapping[str, str] = MappingProxyType({})
# Dialogs for which a person sees what settings would have done; for all together, so long.
MOST_DIALOGS, MOST_SECONDS = 20, 4.0


def page_texts(config: ContextConfig, own: Mapping[str, str] = NOTHING, first: Mapping[str, str] = NOTHING) -> Texts:
    """The page with these settings, and those that a file gives agents. What stands in no file is as it is now."""
    row = stored_settings()
    agents = yaml.safe_dump({AGENTS: {slug: json.loads(one or "{}") for slug, one in own.items()}}) if own else ""
    chosen = {f"{AGENTS}.{slug}.{WHEN_FULL}": one for slug, one in {**when_full(), **first}.items()}
    pruning = row.pruning_agent.slug if row.pruning_agent else ""
    return texts_of(config) | chosen | {"version": row.version, "agents": agents, PRUNING_AGENT: pruning}


def context_of(form: SettingsForm, *, checked: SettingsForm, focus: str, page: str) -> dict[str, Any]:
    """`checked` are the texts that `form` shows, where they were sent: the form itself tells errors only when it is
    asked to save them."""
    if form.wrong:
        # The chain is hidden inputs: its list of strategies has the focus.
        focus = "chain-addable" if form.wrong[0].html_name == CHAIN else form.wrong[0].auto_id
    for one in form.inputs:
        one.field.widget.attrs |= {"autofocus": True} if one.auto_id == focus else {}
    row, chain = stored_settings(), form.chain.value() or []
    return {
        "form": form,
        "focus": focus,
        "pruning_problem": pruning_problem(row),
        "remarks": list(odd_limits(config_of(row.values))),
        "own_agents": agents_with_own_settings(),
        "chain": [(name, phase(name).choice) for name in chain],
        "addable": [(name, phase(name).choice) for name in sorted(REGISTRY) if name not in {TRIM, *chain}],
        "strategies": [_section(name, part) for name, part in form.parts.items() if name in REGISTRY],
        "unsaved": list(unsaved(checked)) if checked.is_bound else [],
        "changes": changes_page(page),
        "ceilings": list(ceilings()),
    }


def _section(name: str, fields: list[Input]) -> tuple[str, Promise | str, list[Input], bool]:
    """A strategy with its words and numbers; open where one of them is not the default, or wrong."""
    return name, phase(name).choice, fields, any(one.errors or one.is_set for one in fields)


def unsaved(form: SettingsForm) -> Iterator[tuple[str, str, str]]:
    """What saving would change, as far as it can be told."""
    row = stored_settings()
    if form.is_valid() and form.config:
        yield from changes(config_of(row.values), form.config)
    yield from changes_of_agents("own_settings", form.cleaned_data.get("agents", {}))
    yield from changes_of_agents("when_full", form.chosen_when_full)
    now, then = row.pruning_agent, form.cleaned_data.get(PRUNING_AGENT)
    if now != then:
        yield PRUNING_AGENT, now.slug if now else "", then.slug if then else ""


@dataclass(frozen=True, kw_only=True)
class WhatIf:
    """One dialog under these settings. Every number is estimated; without a guard there are none.

    `begins_at` is the message with which the current course first exceeded `begins_above`, None where it never did.
    """

    dialog: Dialog
    guard: Guard | None = None
    begins_above: int = 0
    estimated: int = 0
    begins_at: int | None = None
    messages: int = 0

    @property
    def trace(self) -> str:
        return traced(self.guard.trace) if self.guard else ""


def what_if(config: ContextConfig, *, owner: User) -> Iterator[WhatIf]:
    """This person's newest dialogs, as many as can be estimated in time."""
    until = monotonic() + MOST_SECONDS
    for dialog in list_dialogs(user=owner).select_related("current_leaf")[:MOST_DIALOGS]:
        if monotonic() > until:
            return
        guard = guard_of(dialog, config_of_dialog(dialog, config))
        yield _under(guard, dialog) if guard else WhatIf(dialog=dialog)


def _under(guard: Guard, dialog: Dialog) -> WhatIf:
    growth = growth_of(dialog, reserve=guard.reserve)
    above = tokens(guard.config.warning_threshold, guard.limit)
    return WhatIf(
        dialog=dialog,
        guard=guard,
        begins_above=above,
        estimated=growth.totals[-1],
        begins_at=growth.begins_at(above),
        messages=len(growth.sizes),
    )
