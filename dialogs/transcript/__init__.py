"""The messages of a dialog: its branches, courses, views and marks; search; ownership."""

from __future__ import annotations
