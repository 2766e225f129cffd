"""Run every benchmark."""

from __future__ import annotations

from benchmarks import streaming

streaming.main()
