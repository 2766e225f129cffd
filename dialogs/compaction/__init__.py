"""Compaction of stored dialogs: runs from their wish to their end, the card, the archive's way back, the settings
page."""

from __future__ import annotations
