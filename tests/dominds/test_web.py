"""The web server reads no more of a request than it takes, whoever sends it: a real process, a real socket."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
import uvloop

from dominds.event_loop import new_event_loop
from tests.environment import free_port
from tests.shell import ROOT
from tests.stack import settings_of

MEGABYTE = b"x" * 1_000_000


@dataclass(frozen=True)
class Web:
    process: subprocess.Popen[bytes]
    port: int

    def memory_mb(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) / 1000

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)

    def send(self, path: str, body: Iterable[bytes], *headers: str) -> bytes:
        """As much of the body as it takes; what it answered."""
        head = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json", *headers]
        with self.connect() as line:
            line.sendall("\r\n".join([*head, "", ""]).encode())
            try:
                for piece in body:
                    line.sendall(piece)
            except ConnectionError:
                pass
            return line.recv(65536)


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    port = free_port()
    environment = settings_of(tmp_path_factory.mktemp("web"), REDIS_URL="redis://127.0.0.1:1/0")
    command = [sys.executable, "-m", "dominds.web", "--port", str(port), "--verbosity", "0", "dominds.asgi:application"]
    with subprocess.Popen(command, cwd=ROOT, env=environment) as process:
        found = Web(process, port)
        try:
            deadline = time.monotonic() + 90
            while not _listens(found):
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.1)
            yield found
        finally:
            process.kill()


def _listens(web: Web) -> bool:
    try:
        with closing(web.connect()):
            return True
    except OSError:
        return False


def chunked(pieces: Iterable[bytes]) -> Iterator[bytes]:
    for piece in pieces:
        yield b"%x\r\n%s\r\n" % (len(piece), piece)
    yield b"0\r\n\r\n"


def test_its_event_loop_is_uvloops(web: Web) -> None:
    assert "/uvloop/" in Path(f"/proc/{web.process.pid}/maps").read_text()
    with closing(new_event_loop()) as loop:
        assert isinstance(loop, uvloop.Loop)


# One lookup in every second thread: the others are for files.
THREADS = """
import os
from dominds.event_loop import new_event_loop
loop = new_event_loop()
loop.run_until_complete(loop.getaddrinfo("localhost", 80))
print(len(os.listdir("/proc/self/task")))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads where Linux lists them")
def test_names_that_nobody_answers_for_leave_threads_for_others() -> None:
    done = subprocess.run([sys.executable, "-c", THREADS], capture_output=True, text=True, check=True)

    assert int(done.stdout) > 32


def test_without_uvloop_the_loop_is_asyncios(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)

    with closing(new_event_loop()) as loop:
        assert type(loop).__module__.startswith("asyncio")


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/login/", "/mcp", "/dialogs/import/"])
@pytest.mark.parametrize("announced", [True, False], ids=["announced", "in chunks"])
def test_a_body_that_is_too_long_is_refused_and_not_held(web: Web, path: str, announced: bool) -> None:
    before = web.memory_mb()

    if announced:
        answer = web.send(path, [MEGABYTE] * 300, "Content-Length: 300000000")
    else:
        answer = web.send(path, chunked([MEGABYTE] * 300), "Transfer-Encoding: chunked")

    assert answer.startswith(b"HTTP/1.1 413")
    assert web.memory_mb() < before + 60


def test_a_program_is_told_in_json(web: Web) -> None:
    answer = web.send("/v1/chat/completions", [], "Content-Length: 300000000")

    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == "request_too_large"


def test_what_is_not_too_long_is_read(web: Web) -> None:
    """Unknown to the API for want of a key, which it says after it has read the body."""
    answer = web.send("/v1/chat/completions", [MEGABYTE] * 5, "Content-Length: 5000000")

    assert answer.startswith(b"HTTP/1.1 401")


def test_the_next_request_is_answered(web: Web) -> None:
    web.send("/login/", [], "Content-Length: 300000000")

    assert web.send("/healthz", [], "Content-Length: 0").startswith(b"HTTP/1.1")
