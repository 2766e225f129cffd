"""What `up` asks its children, of servers that answer well, badly and not at all."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis

from dominds.supervisor import probes
from tests.environment import free_port, start_valkey


@contextmanager
def saying(answer: bytes) -> Iterator[str]:
    """A server that gives everybody this answer, at its address."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=answer_one, args=(server, answer), daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/healthz"


def answer_one(server: socket.socket, answer: bytes) -> None:
    with server.accept()[0] as asked:
        asked.recv(1000)
        asked.sendall(answer)


@pytest.mark.parametrize(
    ("answer", "serves"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", True),
        # It does not know this name, so it has read the question.
        (b"HTTP/1.0 400 Bad Request\r\n\r\n", True),
        (b"HTTP/1.1 503 Service Unavailable\r\n\r\n", False),
        (b"SSH-2.0-OpenSSH_9.2\r\n", False),
        (b"", False),
    ],
)
def test_a_page_answers_with_whatever_is_no_failure_of_its_server(answer: bytes, serves: bool) -> None:
    with saying(answer) as url:
        assert probes.answers(url) is serves


def test_where_nobody_listens_nothing_answers() -> None:
    assert not probes.answers(f"http://127.0.0.1:{free_port()}/healthz")
    assert not probes.answers(f"redis://:secret@127.0.0.1:{free_port()}/0")


def test_the_embedded_redis_answers_whoever_has_its_password(tmp_path: Path) -> None:
    url = start_valkey(tmp_path)
    with redis.Redis.from_url(url) as client:
        client.config_set("requirepass", "secret")

    assert probes.answers(url.replace("//", "//:secret@"))
    assert not probes.answers(url.replace("//", "//:another@"))
