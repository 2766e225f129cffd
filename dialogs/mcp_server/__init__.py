"""The MCP server: what a person's own programs may read of their dialogs, with their key. It writes nothing.

`server.py` is the list of what there is; `http.py` and the command `mcp` are the two ways in.
"""

from __future__ import annotations
