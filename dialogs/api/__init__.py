"""`/v1`, the API for OpenAI-compatible clients. Requests are checked here, then stored and driven like any dialog."""

from __future__ import annotations
