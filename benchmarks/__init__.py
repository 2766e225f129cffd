"""Benchmarks, one module and command each: `make bench`. Figures are ratios to a baseline of the same run."""

from __future__ import annotations
