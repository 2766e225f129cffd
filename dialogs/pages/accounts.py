"""Signing in: the first user, one-time links, a limit on wrong passwords, and password hashing.

There is no registration: staff add people in the admin.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TypeVar

from django.conf import settings
from django.contrib.auth.hashers import Argon2PasswordHasher
from django.contrib.auth.models import User
from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.core.cache import cache
from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.db import connection, transaction
from django.urls import reverse
from django.utils.encoding import force_bytes, force_str
from django.utils.http import urlsafe_base64_decode, urlsafe_base64_encode
from django.utils.translation import gettext as _
from redis.exceptions import RedisError

from dialogs.common.shared_redis import waiting_client

FAILURES_ALLOWED = 10
FAILURES_SECONDS = 300
Hashed = TypeVar("Hashed")
# The longest wait before a password is checked: proxies commonly give up after a minute.
HASHING_SECONDS = 50.0
# On Linux `nice` holds for the calling thread, and for threads that it starts.
_hashing = ThreadPoolExecutor(1, "hashing", *((os.nice, (10,)) if sys.platform == "linux" else ()))


class TooManySignIns(ValidationError):
    """Too many passwords wait to be hashed; forms show this at the password field."""


class OneAtATime(Argon2PasswordHasher):
    """Django's hasher, one hash at a time in a process and with low priority: each takes 100 MB and eight threads, so
    many people who sign in at once would block everybody."""

    def encode(self, password: str, salt: str) -> str:
        return _in_line(partial(super().encode, password, salt))

    def verify(self, password: str, encoded: str) -> bool:
        return _in_line(partial(super().verify, password, encoded))


def _in_line(hashed: Callable[[], Hashed]) -> Hashed:
    if connection.in_atomic_block:
        # Others may wait for what it has locked.
        return hashed()
    # Pages need it meanwhile.
    connection.close()
    waiting = _hashing.submit(hashed)
    with suppress(TimeoutError):
        return waiting.result(HASHING_SECONDS)
    if waiting.cancel():
        raise TooManySignIns(_("Too many people sign in at this moment. Wait a minute, then try again."))
    return waiting.result()


class SignInTokens(PasswordResetTokenGenerator):
    """Valid for PASSWORD_RESET_TIMEOUT, and until the next sign-in, which changes `last_login`."""

    key_salt = "dialogs.accounts.SignInTokens"

    def _make_hash_value(self, user: User, timestamp: int) -> str:
        # Django's own value drops the microseconds: a link used in the second of the last sign-in would work again.
        return f"{user.pk}{user.password}{user.last_login and user.last_login.isoformat()}{timestamp}"


tokens = SignInTokens()


def sign_in_path(user: User) -> str:
    """A path that signs this person in, once, within a day."""
    uid = urlsafe_base64_encode(force_bytes(user.pk))
    return reverse("welcome", kwargs={"uid": uid, "token": tokens.make_token(user)})


def user_of_link(*, uid: str, token: str, lock: bool = False) -> User | None:
    """The link's person; None if it is wrong, used or too old. The row is locked, so that only one of two clicks signs
    in."""
    try:
        primary_key = int(force_str(urlsafe_base64_decode(uid)))
    except ValueError:
        return None
    rows = User.objects.select_for_update() if lock else User.objects.all()
    user = rows.filter(pk=primary_key, is_active=True).first() if primary_key < 2**63 else None
    return user if user is not None and tokens.check_token(user, token) else None


@transaction.atomic
def ensure_first_user() -> User:
    """The first superuser, created if there is none. An existing password is never changed."""
    supers = User.objects.filter(is_superuser=True, is_active=True).order_by("pk")
    user = supers.filter(username=settings.DOMINDS_ADMIN_USER).first() or supers.first() or _make_first_user()
    if settings.DOMINDS_ADMIN_PASSWORD and not user.has_usable_password():
        user.set_password(settings.DOMINDS_ADMIN_PASSWORD)
        user.save(update_fields=["password"])
    return user


def _make_first_user() -> User:
    name = settings.DOMINDS_ADMIN_USER
    user, created = User.objects.get_or_create(username=name, defaults={"is_staff": True, "is_superuser": True})
    if not created:
        raise ImproperlyConfigured(f"DOMINDS_ADMIN_USER names {name}, who exists and is no active superuser.")
    user.set_unusable_password()
    user.save(update_fields=["password"])
    return user


def _failures_key(username: str, address: str) -> str:
    return "failed-logins-" + hashlib.sha256(f"{username}\n{address}".encode()).hexdigest()


def is_guessing(*, username: str, address: str) -> bool:
    """Ten wrong passwords in five minutes, in all web processes together; while Redis is away, in each."""
    key = _failures_key(username, address)
    try:
        together = int(waiting_client(settings.REDIS_URL).get(key) or 0)
    except (RedisError, OSError):
        together = 0
    return max(together, int(cache.get(key, 0))) >= FAILURES_ALLOWED


def note_failure(*, username: str, address: str) -> None:
    key = _failures_key(username, address)
    if not cache.add(key, 1, FAILURES_SECONDS):
        cache.incr(key)
    with suppress(RedisError, OSError), waiting_client(settings.REDIS_URL).pipeline() as together:
        together.incr(key)
        together.expire(key, FAILURES_SECONDS, nx=True)
        together.execute()
