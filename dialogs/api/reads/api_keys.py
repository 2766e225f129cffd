"""Keys, for their owner's page and for the requests that come with one."""

from __future__ import annotations

from hashlib import sha256

from django.contrib.auth.models import User
from django.db.models import QuerySet

from dialogs.models import ApiKey


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
    rows = ApiKey.objects.select_related("owner").filter(sha256=fingerprint(secret))
    return next(iter(rows.order_by()), None)
