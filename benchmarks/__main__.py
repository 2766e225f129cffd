"""Run every benchmark."""

from __future__ import annotations

from benchmarks import autonomous, streaming

autonomous.main()
streaming.main()
