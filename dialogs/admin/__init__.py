"""Django's admin: settings for staff. Dialogs and messages are not in it, because they are private."""

from __future__ import annotations

from dialogs.admin import llm, mcp_server, people

__all__ = ["llm", "mcp_server", "people"]
