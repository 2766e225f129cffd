"""The critic's side of dialogs: Insights, proposals and what-if replays. It reads numbers, never what was said."""

from __future__ import annotations
