"""The settings page for staff: its views, its fields, what was typed, what is wrong with it, and what it would do."""

from __future__ import annotations
