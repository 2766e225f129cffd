"""Keys, for their owner's page and for the requests that come with one."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from django.contrib.auth.models import User
from django.db.models import CharField, QuerySet

from dialogs.models import ApiKey
from dominds.prepared import prepared


def fingerprint(secret: str) -> str:
    """What is kept of a secret. It is random and has 256 bits, so it cannot be guessed: no slow hash is needed."""
    return sha256(secret.encode(errors="replace")).hexdigest()


def keys_of(user: User) -> QuerySet[ApiKey]:
    return ApiKey.objects.filter(owner=user)


def key_with(secret: str) -> ApiKey | None:
    """The key, usable or not, with its owner.

    It is looked up by its hash: how long that takes tells at most how a hash begins, and from that nobody
    finds a secret. There is nothing to compare in constant time.
    """
    return _with_hash.first(fingerprint(secret))


@prepared(CharField())
def _with_hash(sha256: Any) -> QuerySet[ApiKey]:
    return ApiKey.objects.select_related("owner").filter(sha256=sha256).order_by()
