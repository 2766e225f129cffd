"""Providers and LLMs as rows, their windows and guard, the catalogue, and connecting a server."""

from __future__ import annotations
