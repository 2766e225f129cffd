"""The event loop of web processes and workers of turns: uvloop's, in C, with the promises of asyncio's own."""

from __future__ import annotations

import asyncio
import os

# uvloop asks for addresses on half of its threads, which would be two: names for which no server answers would hold up
# all others, also those that need no server. 64 cost half a megabyte.
LOOKING_UP = "64"


def new_event_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:  # Windows and PyPy have none
        return asyncio.new_event_loop()
    os.environ.setdefault("UV_THREADPOOL_SIZE", LOOKING_UP)
    return uvloop.new_event_loop()
