"""Runs a stand-in server: in a thread beside a test, or as a program until it is told to stop."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import uvicorn
from starlette.applications import Starlette

START_SECONDS, END_SECONDS, TICK_SECONDS = 10.0, 1.0, 0.005


@contextmanager
def serving(app: Starlette, *, port: int = 0) -> Iterator[str]:
    """Its address, while it serves."""
    server, listening = _server(app), _listening(port)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    deadline = time.monotonic() + START_SECONDS
    while not server.started:
        assert time.monotonic() < deadline, "The stand-in did not start."
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(START_SECONDS)


def run(app: Starlette, *, port: int, name: str) -> None:
    """Serve until SIGINT or SIGTERM; print the address first, for whoever waits for it."""
    listening = _listening(port)
    print(f"{name} answers at http://127.0.0.1:{listening.getsockname()[1]}", flush=True)  # noqa: T201
    _server(app).run(sockets=[listening])


class _Server(uvicorn.Server):
    """uvicorn itself looks up ten times a second, and then takes a tenth to end: hundreds of tests wait for that."""

    async def main_loop(self) -> None:
        await self.on_tick(0)
        while not self.should_exit:  # noqa: ASYNC110  another thread sets it
            await asyncio.sleep(TICK_SECONDS)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        # A test that is over must not wait for streams that nobody reads.
        with suppress(TimeoutError):
            async with asyncio.timeout(END_SECONDS):
                while self.server_state.connections or self.server_state.tasks:  # noqa: ASYNC110  uvicorn keeps them
                    await asyncio.sleep(TICK_SECONDS)
        for task in self.server_state.tasks:
            task.cancel()
        await self.lifespan.shutdown()


def _server(app: Starlette) -> _Server:
    return _Server(uvicorn.Config(app, log_level="warning"))


def _listening(port: int) -> socket.socket:
    """Listening already, so that the address can be asked before the server's loop runs."""
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("127.0.0.1", port))
    listening.listen(128)
    return listening
