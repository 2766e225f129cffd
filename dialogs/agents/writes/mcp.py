"""Writing down what MCP servers offer, why one could not be asked, and their secrets.

Asking them is the driver's work (`agents/tools/mcp.py`). `tools_read_at` is when a server was last asked,
whatever came of it; a server whose address changed has never been asked.
"""

from __future__ import annotations

import json
from typing import Any

from django.db import transaction
from django.utils import timezone

from dialogs.common.secrets import encrypt
from dialogs.common.text import storable
from dialogs.models import McpServer


@transaction.atomic
def record_tools(*, server: McpServer, tools: list[dict[str, Any]]) -> None:
    _write(server, tools=_storable(tools), tools_read_at=timezone.now(), problem="")


@transaction.atomic
def record_problem(*, server: McpServer, problem: str) -> None:
    """Why it could not be asked. What it offered before is kept: it may be back for the next call."""
    _write(server, tools_read_at=timezone.now(), problem=storable(problem))


@transaction.atomic
def forget_tools(*, server: McpServer) -> None:
    """Another program or address stands behind this name now: what the earlier one offered means nothing."""
    _write(server, tools=[], tools_read_at=None, problem="")


@transaction.atomic
def set_secrets(*, server: McpServer, secrets: dict[str, str]) -> None:
    """Store these, encrypted, in the place of what was stored."""
    _write(server, secrets_encrypted=encrypt(json.dumps(secrets)) if secrets else "")


def _write(server: McpServer, **fields: Any) -> None:
    """Save these columns only: an admin may be saving the others while the server is asked."""
    for name, value in fields.items():
        setattr(server, name, value)
    McpServer.objects.filter(pk=server.pk).update(**fields)


def _storable(value: Any) -> Any:
    match value:
        case str():
            return storable(value)
        case list():
            return [_storable(item) for item in value]
        case dict():
            return {_storable(key): _storable(item) for key, item in value.items()}
    return value
