"""Compaction of stored dialogs: runs, the card, bringing back from the archive, the settings page."""

from __future__ import annotations
