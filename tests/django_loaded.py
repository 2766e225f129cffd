"""Importing this loads Django. For processes that tests start; the tests' own process has pytest-django."""

from __future__ import annotations

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dominds.settings")
django.setup()
