"""What is known of MCP servers: which ones an agent has, which ones to ask again, and their secrets."""

from __future__ import annotations

import json
from datetime import timedelta

from django.db.models import Q, QuerySet
from django.utils import timezone

from dialogs.common.secrets import decrypt
from dialogs.models import Agent, McpServer

# A server that could not be asked is left alone this long: every turn waits while it is asked.
ASK_AGAIN_AFTER = timedelta(minutes=5)


def servers_of(agent: Agent) -> QuerySet[McpServer]:
    return agent.mcp_servers.filter(enabled=True).order_by("name")


def servers_to_ask(agent: Agent) -> QuerySet[McpServer]:
    """The MCP servers that were never asked for their tools, or failed to answer some time ago."""
    failed_long_ago = ~Q(problem="") & Q(tools_read_at__lt=timezone.now() - ASK_AGAIN_AFTER)
    return servers_of(agent).filter(Q(tools_read_at=None) | failed_long_ago)


def secrets_of(server: McpServer) -> dict[str, str]:
    """Environment variables or headers by name, readable. Raises KeyUnreadable."""
    if not server.secrets_encrypted:
        return {}
    stored: dict[str, str] = json.loads(decrypt(server.secrets_encrypted))
    return stored
