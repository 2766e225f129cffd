"""The addresses below one dialog. Its page and what happens on it are in `dialogs.views`."""

from __future__ import annotations

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
