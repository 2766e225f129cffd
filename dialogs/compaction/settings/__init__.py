"""The settings page for staff: its fields, what was typed into them, what is wrong with it, and what it would do."""

from __future__ import annotations
