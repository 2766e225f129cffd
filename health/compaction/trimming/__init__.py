"""Texts made shorter in their place: payloads, logs, records, clamps, placeholders."""

from __future__ import annotations
