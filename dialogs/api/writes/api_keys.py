"""Every write about API keys: made, changed, revoked, used. A secret exists here once, on its way to its owner."""

from __future__ import annotations

import secrets
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import TypedDict, Unpack

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from dialogs.api.reads.api_keys import fingerprint, offered_models
from dialogs.common.text import storable
from dialogs.models import ApiKey

MARK = "dk-"
SECRET_BYTES = 32
# "dk-" and 42 of the 256 bits: enough to tell keys apart, and of no use to a thief.
PREFIX_CHARS = 10
# Each is counted for a minute.
MOST_REQUESTS = 100_000
USED_EVERY = timedelta(minutes=1)


class InvalidApiKey(ValueError):
    """`str(error)` is a translated sentence that says what is wrong."""


class KeyOptions(TypedDict, total=False):
    """What a person chooses of a key, now and later; what is left out stays as it is."""

    name: str
    allowed_models: Collection[str]
    notices: str
    offers_recall: bool
    requests_per_minute: int | None
    expires_at: datetime | None


@transaction.atomic
def create_key(*, owner: User, scope: str = ApiKey.Scope.CHAT, **chosen: Unpack[KeyOptions]) -> tuple[ApiKey, str]:
    """A new key, and its secret, which nobody can read again."""
    secret = MARK + secrets.token_urlsafe(SECRET_BYTES)
    key = ApiKey(owner=owner, prefix=secret[:PREFIX_CHARS], sha256=fingerprint(secret), scope=scope)
    _fill(key, chosen)
    return key, secret


@transaction.atomic
def change_key(*, key: ApiKey, **chosen: Unpack[KeyOptions]) -> ApiKey:
    """All but its secret and its scope: who handed out a key that reads must not find it chatting."""
    row = ApiKey.objects.select_for_update().get(pk=key.pk)
    if row.revoked_at:
        raise InvalidApiKey(_("This key was revoked. Create another one."))
    _fill(row, chosen)
    return row


def revoke_key(*, key: ApiKey) -> None:
    """From now on the key is refused. There is no way back; a second time changes nothing."""
    ApiKey.objects.filter(pk=key.pk, revoked_at=None).update(revoked_at=timezone.now())


def touch(key: ApiKey) -> None:
    """Note that the key is used, once a minute at most: many requests at once must not queue up to write it."""
    now = timezone.now()
    if key.last_used_at and key.last_used_at > now - USED_EVERY:
        return
    unnoted = Q(last_used_at=None) | Q(last_used_at__lte=now - USED_EVERY)
    ApiKey.objects.filter(unnoted, pk=key.pk).update(last_used_at=now)


def _fill(key: ApiKey, chosen: KeyOptions) -> None:
    expires_at, requests_per_minute = chosen.get("expires_at"), chosen.get("requests_per_minute")
    if expires_at and expires_at != key.expires_at and expires_at <= timezone.now():
        raise InvalidApiKey(_("The day when a key expires must be in the future."))
    if requests_per_minute and requests_per_minute > MOST_REQUESTS:
        raise InvalidApiKey(_("At most %(most)s requests per minute can be set.") % {"most": f"{MOST_REQUESTS:,}"})
    models = _known(chosen.get("allowed_models", key.allowed_models), before=key.allowed_models)
    name = " ".join(storable(chosen.get("name", key.name)).split())
    for field, value in {**chosen, "allowed_models": models, "name": name}.items():
        setattr(key, field, value)
    try:
        key.clean_fields()
    except ValidationError as error:
        raise InvalidApiKey(_sentence(key, error)) from error
    key.save()


def _known(models: Collection[str], *, before: Collection[str]) -> list[str]:
    """Each once, in their order. One that has gone since may stay in a key that had it."""
    known = {*offered_models(), *before}
    unknown = [model for model in models if model not in known]
    if unknown:
        raise InvalidApiKey(_("There is no model %(models)s here.") % {"models": ", ".join(unknown)})
    return list(dict.fromkeys(models))


def _sentence(key: ApiKey, error: ValidationError) -> str:
    """Django's complaints as one line, each with what the field is called."""
    return " ".join(
        f"{getattr(key._meta.get_field(field), 'verbose_name', field)}: {message}"
        for field, messages in error.message_dict.items()
        for message in messages
    )
