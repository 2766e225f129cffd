"""Wiring only: settings, URLs, the ASGI and Celery applications, the supervisor command."""

from __future__ import annotations

__version__ = "0.2.0"
