"""Gateways between a client and a model server, started as their users start them: Dominds and its peers.

Peers have a virtual environment of their own, as their pins are not ours: `var/bench-peers`, or the one that
DOMINDS_BENCH_PEERS names. `install()` makes it.
"""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Protocol

from tests.environment import free_port
from tests.stack import running_stack

ROOT = Path(__file__).parent.parent
PINS = ROOT / "requirements" / "bench-servers.txt"
MODEL = "m"
START_SECONDS = 120.0
# Until the worker that compacts has loaded its model, as `up` lets it do at once.
LOADING_SECONDS = 40.0
TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, kw_only=True)
class Gateway:
    """`url` ends in /v1. `pids` are the processes that work for it."""

    url: str
    model: str = MODEL
    key: str = "none"
    pids: list[int] = field(default_factory=list)

    def cpu_seconds(self) -> float:
        """CPU seconds of its processes so far, including ended children."""
        return sum(_cpu_seconds(pid) for pid in self.pids)


class Starts(Protocol):
    """Starts a gateway in front of a server. `window`: the tokens that the server takes; None, it takes any."""

    def __call__(self, upstream: str, window: int | None = None) -> AbstractContextManager[Gateway]: ...


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / TICK


def peers() -> Path:
    return Path(os.environ.get("DOMINDS_BENCH_PEERS") or ROOT / "var" / "bench-peers")


def install() -> None:
    """An environment with the peers as they are pinned: some 400 MB."""
    venv.create(peers(), with_pip=True)
    command = [_program("python"), "-m", "pip", "install", "--quiet", "--requirement", str(PINS)]
    subprocess.run(command, check=True)


def installed(name: str) -> bool:
    return name in OURS or Path(_program(name)).exists()


def _program(name: str) -> str:
    return str(peers() / "bin" / name)


# The model id with which Dominds never compacts.
UNGUARDED = "bench/unguarded"
# With the model as an LLM where it takes any number of tokens, and else as one that an agent with a limit stands for.
ROWS = """
from django.contrib.auth.models import User
from dialogs.models import LLM, Agent, Provider
provider = Provider.objects.create(name="bench", kind="openai", base_url="{upstream}")
llm = LLM.objects.create(provider=provider, model_id="m", context_length={window} or 100_000)
LLM.objects.create(provider=provider, model_id="unguarded", context_length=llm.context_length, compaction="off")
if {window}:
    Agent.objects.create(name="Bench", slug="bench", llm=llm, context_budget=True, context_limit={window})
User.objects.create_user("bench")
"""


@contextmanager
def dominds(upstream: str, window: int | None = None) -> Iterator[Gateway]:
    """`manage.py up`. With a window its model is spoken to through an agent that has the window as its limit."""
    settings = {"DOMINDS_EMBEDDINGS_IDLE_SECONDS": "0" if window else "600", "DOMINDS_LEASE_SECONDS": "30"}
    with (
        tempfile.TemporaryDirectory() as folder,
        running_stack(Path(folder) / "data", "--no-demo", wait=False, **settings) as stack,
    ):
        stack.wait_until(stack.answers, seconds=START_SECONDS)
        if window:
            time.sleep(LOADING_SECONDS)
        stack.shell(ROWS.replace("{upstream}", upstream).replace("{window}", str(window)))
        key = stack.run_manage("apikey", "create", "bench", "--user", "bench", "--quiet").stdout.strip()
        yield Gateway(
            url=f"{stack.url}/v1",
            model="bench" if window else "bench/m",
            key=key,
            pids=[stack.process.pid, *stack.pids()],
        )


@contextmanager
def context_guardian(upstream: str, window: int | None = None) -> Iterator[Gateway]:
    """Its reserve for the answer is set to what Dominds keeps: by default it takes half of a small window."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        settings = {
            "GUARDIAN_UPSTREAM_URL": upstream,
            "GUARDIAN_PORT": str(port),
            "GUARDIAN_NUM_CTX": str(window or 100_000),
            "GUARDIAN_RESERVE_OUTPUT": str((window or 100_000) // 10),
            "GUARDIAN_DATA_DIR": folder,
            "GUARDIAN_VERSION_CHECK": "0",
        }
        with _running([_program("context-guardian")], settings, port) as pid:
            yield Gateway(url=f"http://127.0.0.1:{port}/v1", pids=[pid])


LITELLM = """
model_list:
  - model_name: m
    litellm_params: {{model: openai/m, api_base: "{upstream}", api_key: none}}
"""


@contextmanager
def litellm(upstream: str, window: int | None = None) -> Iterator[Gateway]:
    """Its proxy, with a key and without a database. It compacts nothing."""
    port, key = free_port(), f"sk-{secrets.token_hex(32)}"
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.yaml"
        config.write_text(LITELLM.format(upstream=upstream))
        options = ["--config", str(config), "--port", str(port), "--host", "127.0.0.1", "--telemetry", "False"]
        settings = {"LITELLM_MASTER_KEY": key, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR"}
        with _running([_program("litellm"), *options], settings, port) as pid:
            yield Gateway(url=f"http://127.0.0.1:{port}/v1", key=key, pids=[pid])


@contextmanager
def daphne(upstream: str, window: int | None = None) -> Iterator[Gateway]:
    """Dominds' web server and HTTP client with nothing between them: the least that it could add."""
    port = free_port()
    command = [sys.executable, "-m", "daphne", "-b", "127.0.0.1", "-p", str(port), "benchmarks.passed_on:application"]
    with _running(command, {"DOMINDS_BENCH_UPSTREAM": upstream}, port) as pid:
        yield Gateway(url=f"http://127.0.0.1:{port}/v1", pids=[pid])


GATEWAYS: dict[str, Starts] = {
    "dominds": dominds,
    "context-guardian": context_guardian,
    "litellm": litellm,
    "daphne": daphne,
}
OURS = ("dominds", "daphne")


@contextmanager
def direct(upstream: str, window: int | None = None) -> Iterator[Gateway]:
    """No gateway: the baseline."""
    yield Gateway(url=upstream)


@contextmanager
def serving(module: str, *arguments: str) -> Iterator[str]:
    """One of our stand-in servers, in a process of its own; its URL."""
    port = free_port()
    with _running([sys.executable, "-m", module, str(port), *arguments], {}, port):
        yield f"http://127.0.0.1:{port}/v1"


@contextmanager
def _running(command: Sequence[str], settings: Mapping[str, str], port: int) -> Iterator[int]:
    """Run a server until the block ends; its process id."""
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, **settings}, stdout=log, stderr=log)
        try:
            deadline = time.monotonic() + START_SECONDS
            while not _listens(port):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"{command[0]} did not start:\n{_told(log)}")
                time.sleep(0.1)
            yield process.pid
        finally:
            process.terminate()
            process.wait(30)


def _told(log: IO[bytes]) -> str:
    log.seek(0)
    return log.read().decode(errors="replace")[-2000:]


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
