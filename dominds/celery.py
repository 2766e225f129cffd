"""The Celery application. Tasks are doors into `dialogs.tasks`; nothing is decided here."""

from __future__ import annotations

import os
import sys

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dominds.settings")

# Celery puts the folder that it was started in first: a `health.py` there would be taken for ours.
before = [*sys.path]
app = Celery("dominds")
sys.path[:] = before
app.config_from_object("django.conf:settings", namespace="CELERY")
app.set_default()
app.autodiscover_tasks()
