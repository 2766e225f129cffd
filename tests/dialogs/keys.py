"""Which key a secret opens, as `/v1` and the MCP server see it."""

from __future__ import annotations

from dialogs.api.auth import authenticate
from dialogs.api.errors import ApiError
from dialogs.models import ApiKey


def opened_with(secret: str) -> ApiKey | None:
    """The key, or None where a request with this secret is refused."""
    try:
        return authenticate(secret)
    except ApiError:
        return None
