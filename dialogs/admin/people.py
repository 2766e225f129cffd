"""Django's user pages, except that a person who has dialogs is switched off and not deleted."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import User

from dialogs.admin.privacy import KeepsDialogs

admin.site.unregister(User)


@admin.register(User)
class PersonAdmin(KeepsDialogs, UserAdmin):
    dialogs_by = "owner"
