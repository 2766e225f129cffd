"""`python -m dominds.web`: Daphne, with three changes.

A request that is too large is refused before it is read: Daphne holds the whole body in memory before the application
gets it, so one request of a stranger could fill the memory.

Database connections are kept open: opening one takes as long as many of a page's queries.

The event loop is uvloop's, which takes a tenth off a request. Daphne uses the reactor that is installed when it is
imported.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections import deque
from typing import Any

from twisted.internet import asyncioreactor

from dominds.event_loop import new_event_loop

asyncioreactor.install(new_event_loop())

from daphne.cli import CommandLineInterface  # noqa: E402
from daphne.http_protocol import HTTPFactory, WebRequest  # noqa: E402
from daphne.server import Server  # noqa: E402
from django.conf import settings  # noqa: E402
from django.db import connection  # noqa: E402

# The address for dialog files. All others take Django's limit for forms and a little more, so that Django can refuse.
IMPORT = b"/dialogs/import/"
SLACK_BYTES = 1024 * 1024
# How long to go on reading after a refusal: a client that is still sending would not read the response otherwise.
GOODBYE_SECONDS = 2.0


class BoundedRequest(WebRequest):
    """Counts the body's bytes as they come, whatever the headers say."""

    received_bytes = 0
    is_refused = False

    def gotLength(self, length: int | None) -> None:  # noqa: N802  Twisted's name
        super().gotLength(0 if self._is_too_long(length or 0) else length)

    def handleContentChunk(self, data: bytes) -> None:  # noqa: N802
        self.received_bytes += len(data)
        if not self._is_too_long(self.received_bytes):
            super().handleContentChunk(data)

    def process(self) -> Any:
        return None if self.is_refused else super().process()

    def _is_too_long(self, length: int) -> bool:
        most = most_bytes(_path_of(self))
        if length > most and not self.is_refused:
            self.is_refused = True
            self.channel.transport.write(refusal(_path_of(self), most))
            asyncio.get_running_loop().call_later(GOODBYE_SECONDS, self.channel.loseConnection)
        return self.is_refused


class BoundedFactory(HTTPFactory):
    def buildProtocol(self, addr: Any) -> Any:  # noqa: N802
        protocol = super().buildProtocol(addr)
        protocol.requestFactory = BoundedRequest
        return protocol


class BoundedServer(Server):
    def __setattr__(self, name: str, value: Any) -> None:
        # Daphne creates its factory in `run`, just before it listens, so it is replaced when it is set.
        super().__setattr__(name, BoundedFactory(self) if name == "http_factory" else value)


class Web(CommandLineInterface):
    server_class = BoundedServer

    def load_asgi_app(self, asgi_app_path: str) -> Any:
        # Daphne has put the working directory first on the path: a `health.py` there would hide ours.
        sys.path.remove(".")
        keep_connections(settings.DATABASES["default"])
        application = super().load_asgi_app(asgi_app_path)
        warmest_first()
        from dialogs.llms import preload

        preload.preload_soon(for_clients=True)
        return application


def keep_connections(database: dict[str, Any]) -> None:
    """Configure kept connections, before the first is opened. Only for web processes.

    SQLite: each thread keeps one. PostgreSQL: a pool, with a check before each use, since the database may have been
    restarted.
    """
    if database["ENGINE"].endswith("sqlite3"):
        database["CONN_MAX_AGE"] = None
    most = settings.DOMINDS_WEB_CONNECTIONS
    if most and database["ENGINE"].endswith("postgresql"):
        database["OPTIONS"] = {**database.get("OPTIONS", {}), "pool": {"min_size": 1, "max_size": most}}
        database["CONN_HEALTH_CHECKS"] = True


class LastInFirstOut(deque[Any]):
    popleft = deque.pop


def warmest_first() -> None:
    """Make the pool give out the connection that was used last: a connection needs some twenty pages to cache tables
    and prepared statements. Reading `connection.pool` creates the pool."""
    if pool := getattr(connection, "pool", None):
        pool._pool = LastInFirstOut()


def most_bytes(path: bytes) -> int:
    if path.partition(b"?")[0] == IMPORT:
        return int(settings.DOMINDS_UPLOAD_BYTES)
    return int(settings.DATA_UPLOAD_MAX_MEMORY_SIZE) + SLACK_BYTES


def refusal(path: bytes, most: int) -> bytes:
    said = f"The request is larger than {most:,} bytes, the most that this Dominds reads."
    error = {"message": said, "type": "invalid_request_error", "param": None, "code": "request_too_large"}
    is_api = path.startswith((b"/v1/", b"/mcp"))
    body = json.dumps({"error": error}) if is_api else said
    kind = "application/json" if is_api else "text/plain; charset=utf-8"
    head = f"HTTP/1.1 413 Content Too Large\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
    return f"{head}Connection: close\r\n\r\n{body}".encode()


def _path_of(request: BoundedRequest) -> bytes:
    """From the channel: `request.path` is set only when the whole request has come."""
    return bytes(getattr(request.channel, "_path", None) or request.path or b"")


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dominds.settings")
    Web.entrypoint()
