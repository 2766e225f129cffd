"""Django's pages for people and groups, except that a person who has dialogs is switched off and not deleted, and that
staff who are no superusers add people and nothing more: nobody rises by these pages, and nobody becomes somebody else.
"""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse

from dialogs.admin.privacy import KeepsDialogs

# What somebody may do, and by which name.
RIGHTS = ("is_staff", "is_superuser", "groups", "user_permissions")

admin.site.unregister((User, Group))


@admin.register(User)
class PersonAdmin(KeepsDialogs, UserAdmin):
    dialogs_by = "owner"

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> tuple[str, ...]:
        fields = tuple(super().get_readonly_fields(request, obj))
        return fields if _is_superuser(request) else (*fields, *RIGHTS)

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return super().has_change_permission(request, obj) and _may_touch(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return super().has_delete_permission(request, obj) and _may_touch(request, obj)

    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> HttpResponse:  # noqa: A002
        """Whoever sets a password signs in with it, and reads what that person said."""
        if not _is_superuser(request):
            raise PermissionDenied
        response: HttpResponse = super().user_change_password(request, id, form_url)
        return response


@admin.register(Group)
class GroupsForSuperusers(GroupAdmin):
    """A group gives permissions to all who are in it."""

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
