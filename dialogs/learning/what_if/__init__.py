"""Stored dialogs under other limits and chains, to be compared: what to try, one replay, and the work of them all."""

from __future__ import annotations
