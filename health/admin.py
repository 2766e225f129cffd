"""Readings, compactions and their settings for staff: numbers and verdicts, read only, never a text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar
from uuid import UUID

from django.contrib import admin
from django.db.models import Model
from django.db.models.constants import LOOKUP_SEP
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from health.models import (
    GRADES,
    CompactionRun,
    ContextEvent,
    ContextSettings,
    HealthReading,
    LlmCalibration,
    LlmPrice,
    SettingsChange,
)
from health.tokens.calibration import Calibration


class WordsFilter(admin.AllValuesFieldListFilter):
    """A filter by a stored code, whose choices are in the words that the page has for it."""

    def choices(self, changelist: Any) -> Iterator[Any]:
        words = changelist.model_admin.words[self.field_path]
        for one in super().choices(changelist):
            yield {**one, "display": words.get(one["display"], one["display"])}


class ReadOnlyAdmin(admin.ModelAdmin):
    """A read-only page. Of related rows it shows only the keys; the labels are translated, as by the column's own name
    they would be "Dialog id" in every language. `words`: for a field of codes, what each is called."""

    ordering = ("-pk",)
    words: ClassVar[Mapping[str, Mapping[str, Any]]] = {}

    @admin.display(description=_("dialog"), ordering="dialog_id")
    def dialog_key(self, row: CompactionRun | ContextEvent) -> UUID | None:
        return row.dialog_id

    @admin.display(description=_("compaction run"), ordering="run_id")
    def run_key(self, row: ContextEvent) -> int | None:
        return row.run_id

    @admin.display(description=_("generation"), ordering="generation_id")
    def generation_key(self, row: HealthReading) -> int:
        return row.generation_id

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Allow only the page's own filters: else a text could be guessed letter by letter through the address."""
        own = {*(str(one[0] if isinstance(one, tuple) else one) for one in self.list_filter), self.date_hierarchy}
        return lookup.split(LOOKUP_SEP)[0] in own and super().lookup_allowed(lookup, value, request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


@admin.register(HealthReading)
class HealthReadingAdmin(ReadOnlyAdmin):
    list_display = (
        "generation_key",
        "level",
        "reason",
        "prompt_tokens",
        "context_window",
        "window_source",
        "optimal_max_tokens",
        "critical_max_tokens",
        "read_at",
    )
    list_filter = ("level", "reason", "window_source")
    date_hierarchy = "read_at"
    exclude = ("generation",)


@admin.register(ContextSettings)
class ContextSettingsAdmin(ReadOnlyAdmin):
    """The one row; it is changed on a page of its own."""

    list_display = ("__str__", "pruning_agent", "version", "page")
    fields = ("page", "pruning_agent", "version", "values")
    readonly_fields = ("page",)

    @admin.display(description=_("change"))
    def page(self, row: ContextSettings) -> SafeString:
        return format_html('<a href="{}">{}</a>', reverse("context_settings"), _("Context settings"))


@admin.register(SettingsChange)
class SettingsChangeAdmin(ReadOnlyAdmin):
    list_display = ("changed_at", "changed_by", "key", "before", "after")
    list_filter = ("changed_by",)
    list_select_related = ("changed_by",)
    date_hierarchy = "changed_at"


@admin.register(CompactionRun)
class CompactionRunAdmin(ReadOnlyAdmin):
    """Lists its fields: views, losses, the ledger and a person's instructions are only for the dialog's owner."""

    list_display = (
        "id", "dialog_key", "trigger", "status", "estimates", "limit_tokens", "messages", "code", "exactness",
        "queued_at",
    )  # fmt: skip
    list_filter = ("status", "trigger", "code", ("grade", WordsFilter), "recovered")
    words: ClassVar = {"grade": GRADES}
    date_hierarchy = "queued_at"
    fields = (
        ("dialog_key", "trigger", "status", "code"),
        ("estimates", "messages", "limit_tokens", "reserve_tokens"),
        ("chain", "phases", "recovered"),
        ("counter", "exactness", "embedder"),
        ("coherence", "reward"),
        ("queued_at", "started_at", "finished_at"),
    )
    readonly_fields = ("dialog_key", "estimates", "exactness", "messages", "phases", "queued_at")

    @admin.display(description=_("estimated tokens"), ordering="estimated_before")
    def estimates(self, row: CompactionRun) -> str:
        return " → ".join(
            "?" if count is None else f"≈{count:,}" for count in (row.estimated_before, row.estimated_after)
        )

    @admin.display(description=_("how exact"), ordering="grade")
    def exactness(self, row: CompactionRun) -> str:
        return str(GRADES.get(row.grade, row.grade))

    @admin.display(description=_("messages"), ordering="messages_before")
    def messages(self, row: CompactionRun) -> str:
        return _arrow(row.messages_before, row.messages_after)

    @admin.display(description=_("steps"))
    def phases(self, row: CompactionRun) -> str:
        return " · ".join(f"{step['phase']} ≈{step.get('estimated_after', 0):,}" for step in row.steps) or "—"


# What the numbers of events are called; one of another version is called as it is stored.
NUMBERS = {
    "estimated": _("estimated"),
    "limit": _("limit"),
    "read": _("read"),
    "compactions": _("compactions"),
    "over_hits": _("over-hits"),
    "failures": _("failures"),
    "course": _("course"),
    "turn": _("turn"),
    "message": _("message"),
    "through": _("up to message"),
    "paused": _("paused"),
}


@admin.register(ContextEvent)
class ContextEventAdmin(ReadOnlyAdmin):
    list_display = ("happened_at", "code", "dialog_key", "run_key", "numbers")
    list_filter = ("code",)
    date_hierarchy = "happened_at"
    fields = readonly_fields = ("happened_at", "code", "dialog_key", "run_key", "numbers")

    @admin.display(description=_("numbers"))
    def numbers(self, row: ContextEvent) -> str:
        """The counts, and the kind of an error: its message may contain text of a prompt."""
        known = {"estimated": row.estimated, "limit": row.limit} | row.facts
        shown = {key: value for key, value in known.items() if isinstance(value, int | float)}
        kind = str(row.facts.get("cause", "")).partition(":")[0]
        return ", ".join(
            [
                *(f"{NUMBERS.get(key, key)} {value:,}" for key, value in shown.items()),
                *([kind] if kind.isidentifier() else []),
            ]
        )


@admin.register(LlmCalibration)
class LlmCalibrationAdmin(ReadOnlyAdmin):
    list_display = ("llm", "ratio", "count", "updated_at")
    list_select_related = ("llm",)
    fields = ("llm", "ratio", "count", "samples", "updated_at")
    readonly_fields = ("ratio", "count", "updated_at")

    @admin.display(description=_("reported for each estimated token"))
    def ratio(self, row: LlmCalibration) -> str:
        return f"{row.known.ratio:.2f}" if isinstance(row.known, Calibration) else "—"

    @admin.display(description=_("samples"))
    def count(self, row: LlmCalibration) -> int:
        return len(row.samples)


def _arrow(*counts: int | None) -> str:
    return " → ".join("?" if count is None else f"{count:,}" for count in counts)


@admin.register(LlmPrice)
class LlmPriceAdmin(admin.ModelAdmin):
    """The only numbers here that a person enters: no server says what it costs."""

    list_display = ("llm", "per_million")
    list_select_related = ("llm",)
