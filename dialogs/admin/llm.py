"""Providers, LLMs and agents in the admin: a service's address, its write-only key and a connection test; an LLM's
limits as its server states them beside those in force, with a warning where they make no sense.
"""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils.formats import date_format
from django.utils.safestring import SafeString
from django.utils.timezone import localtime
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from dialogs.admin.base import AdminMessage, CallsAfterSaving, KeepsDialogs, refresh_limits, show, try_providers
from dialogs.admin.forms import AgentForm, LimitsForm, LLMForm, ProviderForm
from dialogs.agents.tools.workspace import folder_of
from dialogs.common.text import sentences
from dialogs.compaction.settings.checking import limit_warnings
from dialogs.compaction.writes.context_settings import note_changes
from dialogs.context.writes import forget, forget_model
from dialogs.llms.guard import config_of, guard_of
from dialogs.llms.reads import configured, levels_today, missing_key
from dialogs.llms.windows import learned_window
from dialogs.llms.words import kept_by_agent, kept_by_llm, traced
from dialogs.llms.writes.providers import set_api_key
from dialogs.models import LLM, Agent, Dialog, Provider
from dialogs.transcript.views import person_of
from health.compaction.config import chain_for
from health.models import HealthReading
from health.monitor.levels import context_window, thresholds

UNKNOWN = "—"


class LLMInline(admin.TabularInline):
    """The LLMs of one provider, with a few fields. Each has a page of its own."""

    model = LLM
    form = LimitsForm
    extra = 0
    show_change_link = True
    # The LLM's own page refuses to delete what dialogs need.
    can_delete = False


@admin.register(Provider)
class ProviderAdmin(CallsAfterSaving, KeepsDialogs):
    dialogs_by = "llm__provider"
    form = ProviderForm
    change_form_template = "admin/dialogs/provider/change_form.html"
    inlines = (LLMInline,)
    list_display = ("__str__", "kind", "base_url", "key", "enabled", "origin")
    list_filter = ("kind", "enabled", "origin")
    search_fields = ("name", "label", "base_url")
    actions = ("test_connection", "read_limits_now")
    readonly_fields = ("key", "origin", "created_at")
    fieldsets = (
        (None, {"fields": (("name", "label"), ("kind", "enabled"), "base_url", "max_concurrent")}),
        (_("Key"), {"fields": ("key", "new_key", "clear_key", "api_key_env")}),
        (_("Record"), {"fields": (("origin", "created_at"),)}),
    )

    @admin.display(description=_("key"))
    def key(self, row: Provider) -> str:
        if row.api_key_encrypted:
            return gettext("stored")
        if not row.api_key_env:
            return gettext("not stored")
        return missing_key(row) or gettext("from %(variable)s") % {"variable": row.api_key_env}

    calls = {
        "_test": lambda pk: try_providers(Provider.objects.filter(pk=pk)),
        "_read_limits": lambda pk: refresh_limits(_llms(Provider.objects.filter(pk=pk))),
    }

    @admin.action(description=_("Test connection"), permissions=["change"])
    def test_connection(self, request: HttpRequest, queryset: QuerySet[Provider]) -> None:
        show(request, try_providers(queryset))

    @admin.action(description=_("Read limits now"), permissions=["change"])
    def read_limits_now(self, request: HttpRequest, queryset: QuerySet[Provider]) -> None:
        show(request, refresh_limits(_llms(queryset)))

    def save_model(self, request: HttpRequest, obj: Provider, form: ProviderForm, change: bool) -> None:
        super().save_model(request, obj, form, change)
        key: dict[str, Any] = form.cleaned_data
        forgets = change and bool(obj.api_key_encrypted) and form.leads_elsewhere
        if key["new_key"] or key["clear_key"] or forgets:
            set_api_key(provider=obj, key=key["new_key"])
        if forgets and not (key["new_key"] or key["clear_key"]):
            said = gettext("The stored key was removed, because the address leads to another server. Write it again.")
            messages.warning(request, said)

    def save_related(self, request: HttpRequest, form: ProviderForm, formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)
        is_another = change and (form.leads_elsewhere or "kind" in form.changed_data)
        for row in (row for formset in formsets for row in formset.forms):
            if row.instance.pk and (is_another or "model_id" in row.changed_data):
                replaced(request, row.instance)


def _llms(providers: QuerySet[Provider]) -> QuerySet[LLM]:
    return LLM.objects.filter(provider__in=providers, enabled=True).select_related("provider")


def forgotten(llm: LLM) -> list[AdminMessage]:
    forget(llm=llm)
    return [AdminMessage(messages.SUCCESS, str(_("What was learned of its window is forgotten.")))]


def replaced(request: HttpRequest, llm: LLM) -> None:
    """Forget what was read and learned of an LLM whose row now means another model or server."""
    known = (llm.limits_read_at, learned_window(llm))
    forget_model(llm=llm)
    if any(known):
        said = gettext("“%(model)s”: what was read and learned of its window before is forgotten. Read its limits now.")
        messages.warning(request, said % {"model": llm.slug})


@admin.register(LLM)
class LLMAdmin(CallsAfterSaving, KeepsDialogs):
    dialogs_by = "llm"
    form = LLMForm
    change_form_template = "admin/dialogs/llm/change_form.html"
    list_display = ("__str__", "provider", "window", "detected", "caution_above", "critical_above", "enabled")
    list_filter = ("provider", "enabled", "context_length_source", "origin")
    list_select_related = ("provider",)
    search_fields = ("model_id", "label", "provider__name")
    actions = ("read_limits_now",)
    readonly_fields = ("window", "detected", "remarks", "preview", "kept", "learned", "origin")
    fieldsets = (
        (None, {"fields": (("provider", "model_id"), ("label", "enabled"))}),
        (
            _("Context window"),
            {
                "fields": (
                    ("context_length", "detected", "window"),
                    ("input_length", "output_length"),
                    "load_with",
                    "source_url",
                ),
                "description": _("A number typed here stays in force whatever the server says. Empty it to follow."),
            },
        ),
        (
            _("Health"),
            {
                "fields": (
                    ("optimal_max_tokens", "critical_max_tokens"),
                    "caution_remediation_cadence_generations",
                    "remarks",
                    "preview",
                )
            },
        ),
        (_("Compaction"), {"fields": ("compaction", "kept", "learned", "tokenizer", "limit_type")}),
        (_("Tools"), {"fields": (("tool_calling", "tool_result_limit_bytes"), "message_shape")}),
        (_("Record"), {"fields": ("origin",)}),
    )

    @admin.display(description=_("in force"))
    def window(self, row: LLM) -> str:
        size = context_window(configured(row))
        if size is None:
            return str(_("unknown"))
        source = row.get_context_length_source_display() if row.context_length else _("input length")
        return f"{size:,} ({source})" if source else f"{size:,}"

    @admin.display(description=_("read from the server"))
    def detected(self, row: LLM) -> str:
        if row.limits_read_at is None:
            return str(_("not read yet"))
        size = f"{row.detected_context_length:,}" if row.detected_context_length else _("the server does not say")
        return f"{size} · {date_format(localtime(row.limits_read_at), 'SHORT_DATETIME_FORMAT')}"

    @admin.display(description=_("caution above"))
    def caution_above(self, row: LLM) -> str:
        window = context_window(configured(row))
        return f"{thresholds(configured(row), window=window).optimal_max_tokens:,}" if window else UNKNOWN

    @admin.display(description=_("critical above"))
    def critical_above(self, row: LLM) -> str:
        window = context_window(configured(row))
        return f"{thresholds(configured(row), window=window).critical_max_tokens:,}" if window else UNKNOWN

    @admin.display(description=_("remarks"))
    def remarks(self, row: LLM) -> str:
        found = limit_warnings(str(row), configured(row)) if row.pk else []
        return sentences(part for one in found for part in (one.msg, one.hint)) or UNKNOWN

    @admin.display(description=_("newest dialogs"))
    def preview(self, row: LLM) -> str:
        """The levels of the newest dialogs under these limits, so that a changed number can be judged."""
        levels = levels_today(row) if row.pk else []
        return ", ".join(str(HealthReading.Level(level).label) for level in levels) or UNKNOWN

    @admin.display(description=_("kept from overflowing"))
    def kept(self, row: LLM) -> str:
        return kept_by_llm(row) if row.pk else UNKNOWN

    @admin.display(description=_("learned from use"))
    def learned(self, row: LLM) -> str | SafeString:
        known = learned_window(row) if row.pk else None
        return render_to_string("dialogs/_learned_window.html", {"learned": known}) if known else UNKNOWN

    calls = {
        "_read_limits": lambda pk: refresh_limits(LLM.objects.filter(pk=pk).select_related("provider")),
        "_forget_window": lambda pk: forgotten(LLM.objects.get(pk=pk)),
    }

    @admin.action(description=_("Read limits now"), permissions=["change"])
    def read_limits_now(self, request: HttpRequest, queryset: QuerySet[LLM]) -> None:
        show(request, refresh_limits(queryset.select_related("provider")))

    def save_model(self, request: HttpRequest, obj: LLM, form: ModelForm[LLM], change: bool) -> None:
        super().save_model(request, obj, form, change)
        if change and not {"provider", "model_id"}.isdisjoint(form.changed_data):
            replaced(request, obj)
        for odd in limit_warnings(str(obj), configured(obj)):
            messages.warning(request, sentences((odd.msg, odd.hint)))


# LLM types that begin so run on a person's own machine, with small windows.
LOCAL = "local_"
LOCAL_WORDS = _("A context limit is off for new agents, except on an LLM whose limit type begins with “local_”.")


@admin.register(Agent)
class AgentAdmin(KeepsDialogs):
    dialogs_by = "agent"
    form = AgentForm
    list_display = ("name", "slug", "llm", "enabled", "is_demo")
    list_filter = ("enabled", "llm__provider")
    list_select_related = ("llm",)
    search_fields = ("name", "slug", "description")
    prepopulated_fields = {"slug": ("name",)}
    filter_horizontal = ("mcp_servers",)
    readonly_fields = ("kept", "effective_limit", "chain", "folder", "is_demo", "created_at")
    fieldsets = (
        (None, {"fields": (("name", "slug"), "description", "enabled")}),
        (_("What it does"), {"fields": ("llm", "instructions", "max_output_tokens")}),
        (
            _("Context"),
            {
                "fields": (
                    "compaction",
                    "when_full",
                    "kept",
                    ("context_budget", "context_limit", "is_p1"),
                    "effective_limit",
                ),
                "description": LOCAL_WORDS,
            },
        ),
        (_("How it is compacted"), {"fields": ("own", "chain")}),
        (_("Tools"), {"fields": (("workspace_enabled", "folder"), "mcp_servers")}),
        (_("Record"), {"fields": (("is_demo", "created_at"),)}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Agent]:
        """Without the hidden agents that stand for an LLM of `/v1`: their settings have no effect."""
        return super().get_queryset(request).filter(is_direct=False)

    @admin.display(description=_("its folder"))
    def folder(self, row: Agent) -> str:
        """The folder in which an admin puts files for this agent."""
        return str(folder_of(row)) if row.slug else "—"

    @admin.display(description=_("kept from overflowing"))
    def kept(self, row: Agent) -> str:
        return kept_by_agent(row) if row.pk else "—"

    @admin.display(description=_("in force"))
    def effective_limit(self, row: Agent) -> str:
        """A new dialog's limit with this agent, and its source."""
        guard = guard_of(Dialog(agent=row, llm=row.llm)) if row.pk else None
        return f"{guard.limit:,} ({traced(guard.trace)})" if guard else str(_("no limit"))

    @admin.display(description=_("strategies that run"))
    def chain(self, row: Agent) -> str:
        guard = guard_of(Dialog(agent=row, llm=row.llm)) if row.pk else None
        names = guard.chain if guard else chain_for(config_of(Dialog(agent=row, llm=row.llm))) if row.pk else ()
        return " → ".join(names) or "—"

    def save_model(self, request: HttpRequest, obj: Agent, form: ModelForm, change: bool) -> None:
        if not change and obj.llm.limit_type.startswith(LOCAL):
            obj.context_budget = True
        before = Agent.objects.filter(pk=obj.pk).first()
        super().save_model(request, obj, form, change)
        if before:
            note_changes(before=before, now=obj, by=person_of(request))
            self._move_files(request, before, obj)

    def _move_files(self, request: HttpRequest, before: Agent, now: Agent) -> None:
        """Rename the agent's folder, which is named after its short name."""
        old, new = folder_of(before), folder_of(now)
        if old == new or not old.is_dir():
            return
        try:
            old.rename(new)
        except OSError:  # another agent's files are there, or the folder may not be written
            said = gettext("Its files are still in %(old)s: they could not be moved to %(new)s.")
            messages.warning(request, said % {"old": old, "new": new})
