"""System checks of the dialogs app. Ids `dialogs.*`; each has a hint that says what to do.

Only the check tagged `database` asks the database; Django runs it with `check --database` and `migrate`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import CheckMessage, Tags, register
from django.core.checks import Warning as CheckWarning
from django.db import DatabaseError

LOOPBACK = {"127.0.0.1", "localhost", "::1", "[::1]", ""}
SECRET_LEAST_CHARS = 32
LEASE_LEAST_SECONDS = 5


def _warning(number: str, said: str, *, hint: str) -> list[CheckMessage]:
    return [CheckWarning(said, hint=hint, id=f"dialogs.{number}")]


@register(Tags.security)
def check_secret_key(**kwargs: Any) -> list[CheckMessage]:
    secret = settings.SECRET_KEY
    if len(secret) >= SECRET_LEAST_CHARS and len(set(secret)) >= 10:
        return []
    return _warning(
        "W001",
        "DOMINDS_SECRET_KEY is easy to guess.",
        hint="Use at least 32 random characters, or unset it: Dominds then makes one in its data folder.",
    )


@register(Tags.security)
def check_debug(**kwargs: Any) -> list[CheckMessage]:
    if not settings.DOMINDS_DEBUG or settings.DOMINDS_HOST in LOOPBACK:
        return []
    return _warning(
        "W002",
        f"DOMINDS_DEBUG is on while Dominds listens on {settings.DOMINDS_HOST}.",
        hint="Error pages then show settings and code to strangers. Unset DOMINDS_DEBUG.",
    )


@register(Tags.security)
def check_allowed_hosts(**kwargs: Any) -> list[CheckMessage]:
    if "*" not in settings.ALLOWED_HOSTS:
        return []
    return _warning(
        "W003",
        "DOMINDS_ALLOWED_HOSTS is “*”, which turns off the origin check of websockets.",
        hint="Name the hosts by which people reach Dominds.",
    )


@register(Tags.security)
def check_scripted(**kwargs: Any) -> list[CheckMessage]:
    if not settings.DOMINDS_SCRIPTED:
        return []
    return _warning(
        "W004",
        "DOMINDS_SCRIPTED is on: providers may play answers from files.",
        hint="It is meant for tests and screenshots. Unset it elsewhere.",
    )


@register(Tags.compatibility)
def check_shared_database(**kwargs: Any) -> list[CheckMessage]:
    """A Redis that others can reach hints at several machines, which one SQLite file cannot serve."""
    sqlite = settings.DATABASES["default"]["ENGINE"].endswith("sqlite3")
    if not sqlite or (urlsplit(settings.REDIS_URL).hostname or "") in LOOPBACK:
        return []
    return _warning(
        "W005",
        "REDIS_URL names another machine, but the database is an SQLite file of this one.",
        hint="Several machines need PostgreSQL: set DATABASE_URL. With one machine, unset REDIS_URL.",
    )


@register(Tags.compatibility)
def check_lease(**kwargs: Any) -> list[CheckMessage]:
    """A lease is renewed each third of its length: a shorter third is lost to one slow disk write."""
    if settings.DOMINDS_LEASE_SECONDS >= LEASE_LEAST_SECONDS:
        return []
    return _warning(
        "W006",
        f"DOMINDS_LEASE_SECONDS is {settings.DOMINDS_LEASE_SECONDS:g}: a short pause loses the turn.",
        hint=f"Use {LEASE_LEAST_SECONDS} seconds or more; 30 is the default.",
    )


@register(Tags.compatibility)
def check_catalogue(**kwargs: Any) -> list[CheckMessage]:
    """A file that cannot be read stops the start: here it says where, before anything is started. A threshold that is
    none stops nothing, and is told too."""
    from dialogs.llms.writes.catalogue import catalogue_problem, ignored_values

    problem = catalogue_problem()
    if problem is None:
        hint = "Write a whole number above zero, or leave it out."
        return [CheckWarning(str(ignored), hint=hint, id="dialogs.W008") for ignored in ignored_values()]
    hint = "Correct the file, or unset DOMINDS_LLM_FILE. Until then the providers and models stay as they are."
    return _warning("W007", str(problem), hint=hint)


@register(Tags.database)
def check_llm_limits(databases: Sequence[str] | None = None, **kwargs: Any) -> list[CheckMessage]:
    if not databases or "default" not in databases:
        return []
    try:
        return _limit_warnings()
    except DatabaseError:  # `migrate` checks before it has made the tables
        return []


def _limit_warnings() -> list[CheckMessage]:
    from dialogs.compaction.settings.checking import odd_limits
    from health.configured import context_config

    return list(odd_limits(context_config()))
