"""Settings, URLs, the ASGI and Celery applications, prepared queries, backups, and the supervisor."""

from __future__ import annotations

__version__ = "0.2.0"
