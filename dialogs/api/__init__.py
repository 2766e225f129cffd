"""`/v1`: the door for OpenAI-compatible clients. Bodies are checked here; what is said is stored and driven as ever."""

from __future__ import annotations
