"""Compaction of a stored dialog: who is guarded, how full the next request would be, and the run itself.

The engine is `health.compaction`; here stored messages become its units, and its result becomes a view.
"""

from __future__ import annotations
