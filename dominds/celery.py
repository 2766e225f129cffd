"""The Celery application. Its tasks are in `dialogs.tasks`."""

from __future__ import annotations

import os
import sys

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dominds.settings")

# Celery puts the working directory first on the path: a `health.py` there would hide ours.
before = [*sys.path]
app = Celery("dominds")
sys.path[:] = before
app.config_from_object("django.conf:settings", namespace="CELERY")
app.set_default()
app.autodiscover_tasks()
