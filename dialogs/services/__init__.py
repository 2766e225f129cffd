"""Every write, one file a noun. Sync, atomic, keyword-only; a service never calls a provider."""

from __future__ import annotations
