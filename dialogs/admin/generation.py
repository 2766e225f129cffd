"""Generations as staff may see them: what was called and what it cost, never what was said."""

from __future__ import annotations

from django.contrib import admin
from django.db.models.constants import LOOKUP_SEP
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from dialogs.models import Generation

FILTERS = ("status", "error_code", "llm")
MOMENT = "started_at"


@admin.register(Generation)
class GenerationAdmin(admin.ModelAdmin):
    list_display = ("id", "llm_name", "status", "attempt", "prompt_tokens", "level", "error_code", "started_at", "took")
    list_filter = FILTERS
    list_select_related = ("reading",)
    date_hierarchy = MOMENT
    # Named one by one: the texts, the error's words and the manifest belong to the dialog's owner.
    fields = (
        ("llm_name", "attempt"),
        ("status", "finish_reason", "error_code"),
        ("prompt_tokens", "completion_tokens", "total_tokens", "cached_tokens"),
        "level",
        ("started_at", "first_token_at", "finished_at", "took"),
    )
    readonly_fields = ("level", "took")

    @admin.display(description=_("level"), ordering="reading__level")
    def level(self, row: Generation) -> str:
        return row.reading.get_level_display() if hasattr(row, "reading") else "—"

    @admin.display(description=_("seconds"))
    def took(self, row: Generation) -> str:
        return f"{(row.finished_at - row.started_at).total_seconds():.1f}" if row.finished_at else "—"

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Allow only the filters of the page: else a text could be guessed from the address, letter by letter."""
        return lookup.split(LOOKUP_SEP)[0] in {*FILTERS, MOMENT} and super().lookup_allowed(lookup, value, request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Generation | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Generation | None = None) -> bool:
        return False
