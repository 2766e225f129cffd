"""Providers in the admin: where a service is, its key (for writing only), and whether it answers."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from dialogs.admin.forms import LimitsForm, ProviderForm
from dialogs.admin.privacy import KeepsDialogs
from dialogs.admin.probing import CallsAfterSaving, refresh_limits, show, try_providers
from dialogs.llms.reads.providers import missing_key
from dialogs.llms.writes.providers import set_api_key
from dialogs.models import LLM, Provider


class LLMInline(admin.TabularInline):
    """The LLMs of one provider, in short. Each has a page of its own."""

    model = LLM
    form = LimitsForm
    extra = 0
    show_change_link = True
    # Deleting goes through the LLM's own page, which knows what hangs on it.
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


def _llms(providers: QuerySet[Provider]) -> QuerySet[LLM]:
    return LLM.objects.filter(provider__in=providers, enabled=True).select_related("provider")
