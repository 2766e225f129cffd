"""Short questions to servers on this machine: is the port free, does the page answer, does Redis."""

from __future__ import annotations

import socket
import urllib.error
import urllib.request

import redis

PATIENCE_SECONDS = 0.5
ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104


def reachable(host: str) -> str:
    """The address at which this machine reaches a server that listens on `host`, ready for a URL."""
    host = ANY_ADDRESS.get(host, host)
    return f"[{host}]" if ":" in host else host


def port_problem(host: str, port: int) -> OSError | None:
    """Why a server could not listen there; None when it could."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            # As servers do: a port in the minute after its last connection counts as free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        return error
    return None


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def page_answers(url: str) -> bool:
    """True for any answer that is not a failure of the server: a refused host name still means it serves."""
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE_SECONDS):  # noqa: S310
            return True
    except urllib.error.HTTPError as error:
        return error.code < 500
    except OSError:
        return False


def redis_answers(url: str) -> bool:
    try:
        with redis.Redis.from_url(
            url, socket_connect_timeout=PATIENCE_SECONDS, socket_timeout=PATIENCE_SECONDS
        ) as client:
            return bool(client.ping())
    except redis.RedisError:
        return False
