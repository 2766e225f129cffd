"""Run every benchmark."""

from __future__ import annotations

from benchmarks import (
    autonomous,
    compaction,
    counting,
    critic_month,
    jumps,
    live_compaction,
    live_latency,
    meaning,
    prefix,
    streaming,
)

autonomous.main()
streaming.main()
live_latency.main()
live_compaction.main()
counting.main()
jumps.main()
prefix.main()
compaction.main()
meaning.main()
critic_month.main()
