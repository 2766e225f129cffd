"""The event loop of web processes and workers of turns: uvloop's, in C, with the promises of asyncio's own."""

from __future__ import annotations

import asyncio


def new_event_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:  # Windows and PyPy have none
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()
