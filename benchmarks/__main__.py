"""Run the benchmarks that need nothing but this machine, each with the seconds that it took. `make bench`.

Peers and locust are measured where `python -m benchmarks.api_latency --install` has put them.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from benchmarks import (
    api_latency,
    autonomous,
    compaction,
    counting,
    critic_month,
    jumps,
    live_compaction,
    live_latency,
    load,
    meaning,
    prefix,
    prepared,
    streaming,
)
from benchmarks.gateways import installed

# Fewer than fifty people, for one minute: the full load takes an hour.
FEW = ("--people", "10", "--clients", "10", "--agents", "4", "--dialogs", "100", "--seconds", "60")


def timed(name: str, work: Callable[[], object]) -> None:
    print(f"\n=== {name}", flush=True)
    begin = time.monotonic()
    work()
    print(f"=== {name}: {time.monotonic() - begin:.0f} s", flush=True)


for module in (
    autonomous,
    streaming,
    live_latency,
    live_compaction,
    counting,
    jumps,
    prefix,
    compaction,
    meaning,
    critic_month,
    prepared,
    api_latency,
):
    timed(module.__name__, module.main)
if installed("locust"):
    timed(load.__name__, lambda: load.main(*FEW))
