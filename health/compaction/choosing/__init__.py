"""What is worth keeping: scores, matches, sources, summaries, losses."""

from __future__ import annotations
