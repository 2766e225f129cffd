"""The event loop of web processes and of the turns' worker: uvloop, else asyncio's."""

from __future__ import annotations

import asyncio
import os

# uvloop looks up host names on half of its threads, by default two: names whose server does not answer would block all
# others. 64 threads cost half a megabyte.
LOOKING_UP = "64"


def new_event_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:  # Windows and PyPy have none
        return asyncio.new_event_loop()
    os.environ.setdefault("UV_THREADPOOL_SIZE", LOOKING_UP)
    return uvloop.new_event_loop()
