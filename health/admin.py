"""Readings as staff may see them: numbers and verdicts, read only."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest

from health.models import HealthReading


@admin.register(HealthReading)
class HealthReadingAdmin(admin.ModelAdmin):
    list_display = (
        "generation_id",
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

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: HealthReading | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: HealthReading | None = None) -> bool:
        return False
