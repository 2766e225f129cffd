"""What Django does anew for each page, done once: settings name these two in the place of Django's own."""

from __future__ import annotations

from functools import cache
from typing import Any

from django.contrib.sessions.backends import db
from django.contrib.staticfiles.storage import StaticFilesStorage
from django.db.models import CharField, DateTimeField, QuerySet
from django.utils import timezone

from dominds.prepared import prepared


class SessionStore(db.SessionStore):
    """Sessions in the database, found by a prepared query."""

    def _get_session_from_db(self) -> Any:
        found = _unexpired.first(self.session_key, timezone.now())
        if found is None:
            self._session_key = None
        return found


@prepared(CharField(), DateTimeField())
def _unexpired(key: Any, now: Any) -> QuerySet[Any]:
    sessions: QuerySet[Any] = SessionStore.get_model_class().objects.filter(session_key=key, expire_date__gt=now)
    return sessions


class StaticFiles(StaticFilesStorage):
    """A page names some sixty files, each always at the same address."""

    @cache  # noqa: B019  # one storage a process
    def url(self, name: str | None) -> str:
        return super().url(name)
