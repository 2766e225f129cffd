"""Figures, one command each: `make bench`. Ratios against a named baseline of the same run; never a test."""

from __future__ import annotations
