"""Run every benchmark."""

from __future__ import annotations

from benchmarks import autonomous, compaction, counting, meaning, streaming

autonomous.main()
streaming.main()
counting.main()
compaction.main()
meaning.main()
