"""The MCP server: what a person's own programs may read of their dialogs, with their key. It writes nothing.

`tools.py` is the list of what there is; `http.py` and `stdio.py` are the two ways in.
"""

from __future__ import annotations
