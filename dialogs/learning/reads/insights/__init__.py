"""What the Insights page shows: numbers of one's own dialogs, or for staff of everybody's. No title, no word."""

from __future__ import annotations
