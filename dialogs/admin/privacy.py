"""Deleting in the admin without showing, or losing, what other people said.

Django's page before a deletion lists the titles of the dialogs that hang on the row. Ours counts them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from django.contrib.admin import ModelAdmin
from django.db.models import Model
from django.http import HttpRequest
from django.utils.translation import ngettext

from dialogs.models import Dialog


class KeepsDialogs(ModelAdmin):
    """Refuses to delete rows that dialogs need. `dialogs_by` is the lookup from a dialog to such rows."""

    dialogs_by: ClassVar[str]

    def get_deleted_objects(self, objs: Iterable[Model], request: HttpRequest) -> Any:
        rows = list(objs)
        count = Dialog.objects.filter(**{f"{self.dialogs_by}__in": rows}).count()
        if not count:
            return super().get_deleted_objects(rows, request)
        need = ngettext("%(count)s dialog needs it", "%(count)s dialogs need it", count) % {"count": count}
        return [], {}, set(), [need]
