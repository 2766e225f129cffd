"""Health checks of servers on this machine: is a port free, does a page answer, does Redis.

The supervisor imports this, so it imports nothing large, such as a client for HTTP or Redis.
"""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

PATIENCE_SECONDS = 0.5
ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104


def reachable(host: str) -> str:
    """The host part of a URL at which this machine reaches a server that listens on `host`."""
    host = ANY_ADDRESS.get(host, host)
    return f"[{host}]" if ":" in host else host


def port_problem(host: str, port: int) -> OSError | None:
    """Why a server could not listen there; None when it could."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            # As servers do: a port with connections in TIME_WAIT counts as free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        return error
    return None


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(url: str) -> bool:
    """Does the web server, or the embedded Redis, answer at this address?"""
    return embedded_answers(url) if url.startswith("redis:") else page_answers(url)


def page_answers(url: str) -> bool:
    """True for any status below 500: also a refused host name shows that the server runs."""
    place = urlsplit(url)
    said = _lines(url, f"GET {place.path} HTTP/1.0\r\nHost: {place.netloc}\r\n\r\n", count=1)
    status = said[0].split()[1:2] if said else []
    return bool(status) and status[0].isdigit() and int(status[0]) < 500


def embedded_answers(url: str) -> bool:
    return _lines(url, f"AUTH {urlsplit(url).password}\r\nPING\r\n", count=2) == [b"+OK\r\n", b"+PONG\r\n"]


def _lines(url: str, question: str, *, count: int) -> list[bytes]:
    """The first lines of a server's answer; empty if it does not answer."""
    place = urlsplit(url)
    try:
        with socket.create_connection((place.hostname, place.port), PATIENCE_SECONDS) as asked:
            asked.sendall(question.encode())
            with asked.makefile("rb") as answer:
                return [answer.readline() for _line in range(count)]
    except OSError:
        return []


def redis_answers(url: str) -> bool:
    """Any Redis, asked by its client, which knows all kinds of addresses."""
    import redis

    patience = {"socket_connect_timeout": PATIENCE_SECONDS, "socket_timeout": PATIENCE_SECONDS}
    try:
        with redis.Redis.from_url(url, **patience) as client:
            return bool(client.ping())
    except redis.RedisError:
        return False
