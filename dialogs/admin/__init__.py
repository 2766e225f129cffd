"""The admin, stock Django's: settings for staff. Dialogs and messages are not here, because they are private."""

from __future__ import annotations

from dialogs.admin import llm, mcp_server, people

__all__ = ["agent", "generation", "llm", "mcp_server", "people"]
