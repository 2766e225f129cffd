"""People, groups, API keys and generations in the admin.

Django's pages for people and groups, with two differences: a person who has dialogs can be switched off but not
deleted; and only superusers grant rights, set other people's passwords, and edit superusers and groups. Staff see an
API key's owner and use, and can revoke it; they never see the secret.
"""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.forms import AdminPasswordChangeForm, AdminUserCreationForm
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import Group, User
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from dialogs.admin.base import KeepsDialogs
from dialogs.api.writes.api_keys import revoke_key
from dialogs.common.errors import HEADLINES, headline
from dialogs.models import ApiKey, Generation
from dialogs.pages.accounts import TooManySignIns
from health.admin import ReadOnlyAdmin, WordsFilter

# The fields that grant rights.
RIGHTS = ("is_staff", "is_superuser", "groups", "user_permissions")

admin.site.unregister((User, Group))


class HashesInClean(forms.BaseForm):
    """A form that hashes its new password in `clean`, or refuses it there while too many passwords are being hashed."""

    hashed: ClassVar[str | TooManySignIns | None] = None

    def clean(self) -> Any:
        cleaned = super().clean()
        password = self.cleaned_data["set_usable_password"] and self.cleaned_data.get("password1")
        self.made = self.hashed
        if password and not self.errors and self.made is None:
            try:
                self.made = make_password(password)
            except TooManySignIns as error:
                self.made = error
        if isinstance(self.made, TooManySignIns):
            self.add_error("password1", self.made)
        return cleaned

    def set_password_and_save(self, user: User, **kwargs: Any) -> User:
        if not self.cleaned_data["set_usable_password"]:
            return super().set_password_and_save(user, **kwargs)  # type: ignore[misc]
        user.password = str(self.made)
        if kwargs.get("commit", True):
            user.save()
        return user


class NewPersonForm(HashesInClean, AdminUserCreationForm):  # type: ignore[misc]
    pass


class NewPasswordForm(HashesInClean, AdminPasswordChangeForm):
    pass


@admin.register(User)
class PersonAdmin(KeepsDialogs, UserAdmin):
    dialogs_by, switch = "owner", "is_active"
    add_form = NewPersonForm
    change_password_form = NewPasswordForm

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        """Hash the password before Django's transaction, which keeps everybody else from writing."""
        if request.method == "POST" and self.has_add_permission(request) and self.has_change_permission(request):
            asked = self.add_form(request.POST)
            asked.is_valid()
            request._hashed = asked.made  # type: ignore[attr-defined]
        response: HttpResponse = super().add_view(request, form_url, extra_context)
        return response

    def get_form(self, request: HttpRequest, obj: User | None = None, **kwargs: Any) -> Any:  # type: ignore[override]
        form: Any = super().get_form(request, obj, **kwargs)
        if obj is None:
            form.hashed = getattr(request, "_hashed", None)
        return form

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> tuple[str, ...]:
        fields = tuple(super().get_readonly_fields(request, obj))
        return fields if _is_superuser(request) else (*fields, *RIGHTS)

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return super().has_change_permission(request, obj) and _may_touch(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return super().has_delete_permission(request, obj) and _may_touch(request, obj)

    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> HttpResponse:  # noqa: A002
        """For superusers only: with a new password one could sign in as that person and read their dialogs."""
        if not _is_superuser(request):
            raise PermissionDenied
        response: HttpResponse = super().user_change_password(request, id, form_url)
        return response


@admin.register(Group)
class GroupsForSuperusers(GroupAdmin):
    """For superusers only: a group grants rights."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return _is_superuser(request)

    def has_change_permission(self, request: HttpRequest, obj: Group | None = None) -> bool:
        return _is_superuser(request)

    def has_delete_permission(self, request: HttpRequest, obj: Group | None = None) -> bool:
        return _is_superuser(request)


def _is_superuser(request: HttpRequest) -> bool:
    return bool(getattr(request.user, "is_superuser", False))


def _may_touch(request: HttpRequest, obj: Any) -> bool:
    return _is_superuser(request) or not (isinstance(obj, User) and obj.is_superuser)


@admin.register(ApiKey)
class ApiKeyAdmin(admin.ModelAdmin):
    """Keys can be revoked here, not added or changed: only the owner makes a key and sees it."""

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
        return str(row.state.label)

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


@admin.register(Generation)
class GenerationAdmin(ReadOnlyAdmin):
    list_display = ("id", "llm_name", "status", "attempt", "prompt_tokens", "level", "error", "started_at", "took")
    list_filter = ("status", ("error_code", WordsFilter), "llm")
    words: ClassVar = {"error_code": HEADLINES}
    list_select_related = ("reading",)
    date_hierarchy = "started_at"
    # Listed, because texts, error messages and manifest are private to the dialog's owner.
    fields = (
        ("llm_name", "attempt"),
        ("status", "finish_reason"),
        ("error", "error_code"),
        ("prompt_tokens", "completion_tokens", "total_tokens", "cached_tokens"),
        "level",
        ("started_at", "first_token_at", "finished_at", "took"),
    )
    readonly_fields = ("level", "error", "took")

    @admin.display(description=_("error"), ordering="error_code")
    def error(self, row: Generation) -> str:
        return str(headline(row.error_code)) if row.error_code else ""

    @admin.display(description=_("level"), ordering="reading__level")
    def level(self, row: Generation) -> str:
        return row.reading.get_level_display() if hasattr(row, "reading") else "—"

    @admin.display(description=_("seconds"))
    def took(self, row: Generation) -> str:
        """Unknown while it runs, and where the clock was set back meanwhile."""
        seconds = (row.finished_at - row.started_at).total_seconds() if row.finished_at else -1
        return f"{seconds:.1f}" if seconds >= 0 else "—"
