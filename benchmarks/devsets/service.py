"""Service: an agent with tools over tables of a shop, an airline or a clinic, and a customer who wants things."""

from __future__ import annotations

from benchmarks.devsets.shop import shop

WRITERS = (shop,)
