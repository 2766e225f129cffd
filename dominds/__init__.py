"""Wiring only: settings, URLs, the ASGI and Celery applications, the supervisor command."""

from __future__ import annotations

from dominds.celery import app as celery_app

__all__ = ["celery_app"]
__version__ = "0.2.0"
