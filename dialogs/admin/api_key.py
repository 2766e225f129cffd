"""API keys in the admin: whose they are and when they were used. Staff can revoke one, and see no secret."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from dialogs.api.writes.api_keys import revoke_key
from dialogs.models import ApiKey


@admin.register(ApiKey)
class ApiKeyAdmin(admin.ModelAdmin):
    """Nothing is added or changed here: a key is made by its owner, who alone sees it."""

    list_display = ("name", "owner", "beginning", "scope", "state", "expires_at", "last_used_at")
    list_filter = ("scope", "owner")
    list_select_related = ("owner",)
    search_fields = ("name", "prefix", "owner__username")
    actions = ("revoke",)
    fields = (
        ("name", "owner", "beginning", "scope", "state"),
        ("allowed_models", "notices", "offers_recall", "requests_per_minute"),
        ("created_at", "expires_at", "last_used_at", "revoked_at"),
    )
    readonly_fields = ("beginning", "state", "created_at")

    @admin.display(description=_("key"))
    def beginning(self, row: ApiKey) -> str:
        return f"{row.prefix}…"

    @admin.display(description=_("state"))
    def state(self, row: ApiKey) -> str:
        if row.revoked_at:
            return gettext("revoked")
        return gettext("usable") if row.is_usable else gettext("expired")

    @admin.action(description=_("Revoke"), permissions=["revoke"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> None:
        rows = list(queryset.filter(revoked_at=None))
        for row in rows:
            revoke_key(key=row)
        said = ngettext("%(count)s key is revoked.", "%(count)s keys are revoked.", len(rows)) % {"count": len(rows)}
        self.message_user(request, said, messages.SUCCESS)

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("dialogs.change_apikey")

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: ApiKey | None = None) -> bool:
        return False
