"""Pages that belong to no other feature: the dialog's page, lists, signing in, URLs, and the websocket that updates
pages."""

from __future__ import annotations
