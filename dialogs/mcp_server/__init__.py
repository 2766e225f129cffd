"""The MCP server: with a person's API key, programs read that person's dialogs. It writes nothing.

`server.py` lists the tools and resources; `http.py` serves them over HTTP, the command `mcp` over stdin and stdout.
"""

from __future__ import annotations
