"""What an agent has: tools, MCP servers, reminders, a workspace."""

from __future__ import annotations
