"""The Celery application. Tasks are doors into `dialogs.tasks`; nothing is decided here."""

from __future__ import annotations

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dominds.settings")

app = Celery("dominds")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.set_default()
app.autodiscover_tasks()
