"""Whose request this is: from the headers to the key. Its callers are `/v1` and the MCP server.

Reads the database, so an async view asks through `database_sync_to_async`.
"""

from __future__ import annotations

from collections.abc import Mapping

from dialogs.api import errors
from dialogs.api.reads.api_keys import key_with
from dialogs.api.writes.api_keys import touch
from dialogs.models import ApiKey

# Anthropic's and Azure's clients have headers of their own.
OTHER_HEADERS = ("x-api-key", "api-key")


def secret_in(headers: Mapping[str, str]) -> str:
    """The secret that was sent, or nothing. The mapping ignores case, or has its names in small letters."""
    scheme, _space, secret = headers.get("authorization", "").strip().partition(" ")
    if scheme.lower() == "bearer" and secret.strip():
        return secret.strip()
    return next((found for name in OTHER_HEADERS if (found := headers.get(name, "").strip())), "")


def authenticate(secret: str) -> ApiKey:
    """The key, with its owner. Raises the ApiError that says what is wrong with it. Its use is noted."""
    if not secret:
        raise errors.missing_key()
    key = key_with(secret)
    if key is None:
        raise errors.unknown_key()
    # Only who has the secret learns of these.
    if key.revoked_at:
        raise errors.revoked_key()
    if not key.is_usable:
        raise errors.expired_key()
    if not key.owner.is_active:
        raise errors.disabled_owner()
    touch(key)
    return key


def require_chat(key: ApiKey) -> None:
    """Raises where the key may only read."""
    if key.scope == ApiKey.Scope.READ:
        raise errors.insufficient_scope()


def require_read(key: ApiKey) -> None:
    """Raises where the key may only chat: its program sees none of the owner's dialogs."""
    if key.scope == ApiKey.Scope.CHAT_ONLY:
        raise errors.may_only_chat()


def may_use(key: ApiKey, model: str) -> bool:
    """`model` is an id as `GET /v1/models` lists it."""
    return not key.allowed_models or model in key.allowed_models
