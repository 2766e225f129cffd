"""An agent's tools, MCP servers, reminders and workspace."""

from __future__ import annotations
