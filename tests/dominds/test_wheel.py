"""The wheel as people install it: in an empty environment, without this checkout, on a folder that nobody named."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZipFile

import httpx
import pytest

from dominds import __version__
from tests.environment import free_port
from tests.shell import ROOT
from tests.stack import FOREIGN
from tests.standins.compatible import CompatibleStandin
from tests.standins.serving import serving

pytestmark = pytest.mark.long
EXTRAS = ("demo", "embeddings", "postgres")


@dataclass(frozen=True, kw_only=True)
class Installed:
    """A virtual environment with nothing but the wheel, and a home in which it was never started."""

    programs: Path
    home: Path

    @property
    def data(self) -> Path:
        return self.home / "data" / "dominds"

    def environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not FOREIGN.fullmatch(name)}
        return {**inherited, "XDG_DATA_HOME": str(self.home / "data")}

    def run(self, *arguments: str) -> str:
        done = subprocess.run(
            [str(self.programs / "dominds"), *arguments],
            cwd=self.home, env=self.environment(), capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    @contextmanager
    def up(self) -> Iterator[str]:
        """What it printed when it ran: the line with the address."""
        command = [str(self.programs / "dominds"), "up", "--port", str(free_port())]
        said, log = self.home / "stdout", self.home / "stderr"
        with said.open("w") as stdout, log.open("w") as stderr:
            process = subprocess.Popen(command, cwd=self.home, env=self.environment(), stdout=stdout, stderr=stderr)
        try:
            deadline = time.monotonic() + 120
            while "\n" not in said.read_text():
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.1)
            yield said.read_text()
        finally:
            process.terminate()
            process.wait(30)


def copy_of_the_checkout(target: Path) -> Path:
    """What is committed or would be: a build leaves files behind, and must not see those of others."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0"):
        if name and (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            (target / name).write_bytes((ROOT / name).read_bytes())
    return target


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source, built = copy_of_the_checkout(tmp_path_factory.mktemp("source")), tmp_path_factory.mktemp("built")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(built), str(source)]
    subprocess.run(command, check=True)
    return next(built.glob("dominds-*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    place = tmp_path_factory.mktemp("installed")
    subprocess.run([sys.executable, "-m", "venv", str(place / "venv")], check=True)
    pip = [str(place / "venv" / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, str(wheel)], check=True)
    home = place / "home"
    home.mkdir()
    # People start programs in folders of their own, with modules of their own.
    (home / "health.py").write_text("raise SystemExit('a module of the folder it was started in was imported')\n")
    return Installed(programs=place / "venv" / "bin", home=home)


def wishes(name: str) -> set[str]:
    lines = (ROOT / "requirements" / f"{name}.txt").read_text().splitlines()
    return {re.sub(r"\s|'", "", line) for line in lines if line and not line.startswith("#")}


def test_its_extras_are_the_lists_that_make_installs(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        folder = next(name for name in archive.namelist() if name.endswith("METADATA"))
        lines = archive.read(folder).decode().splitlines()
    wanted = [line.removeprefix("Requires-Dist: ") for line in lines if line.startswith("Requires-Dist: ")]
    plain = {re.sub(r"\s", "", one) for one in wanted if "extra ==" not in one}

    assert plain == wishes("base")
    for extra in EXTRAS:
        suffix = f'; extra == "{extra}"'
        assert {one.removesuffix(suffix) for one in wanted if one.endswith(suffix)} == wishes(extra)


def test_it_says_its_version(installed: Installed) -> None:
    assert installed.run("--version") == f"Dominds {__version__}\n"


def test_it_carries_each_command(installed: Installed) -> None:
    listed = set(re.findall(r"^    (\w+)$", installed.run("help"), flags=re.MULTILINE))
    ours = {file.stem for file in ROOT.glob("d*/management/commands/*.py")} - {"__init__"}

    assert ours <= listed


def test_it_is_started_a_server_is_added_and_somebody_chats(installed: Installed) -> None:
    with serving(CompatibleStandin(window=8_192).app()) as server, installed.up() as said:
        added = installed.run("provider", "add", "openai", f"{server}/v1", "--name", "near")
        key = installed.run("apikey", "create", "laptop", "--user", "admin", "--quiet").strip()
        address = said.split("/  ")[0].split()[-1]
        body = {"model": "near/house-13b", "messages": [{"role": "user", "content": "Where do ferries go?"}]}
        asked = httpx.post(
            f"{address}/v1/chat/completions", json=body, headers={"Authorization": f"Bearer {key}"}, timeout=60
        )
        with httpx.Client(follow_redirects=True, headers={"Accept-Language": "zh-hans"}) as browser:
            page = browser.get(said.split()[-1]).text
            files = re.findall(r'(?:href|src)="(/static/[^"]+)"', page)
            statuses = {file: browser.get(f"{address}{file}").status_code for file in files}

    assert "house-13b" in added
    assert asked.status_code == 200, asked.text
    assert asked.json()["choices"][0]["message"]["content"]
    assert (installed.data / "dominds.sqlite3").exists()
    assert "对话" in page
    assert files
    assert set(statuses.values()) == {200}
    assert "a module of the folder" not in (installed.home / "stderr").read_text()


def test_what_only_make_installs_can_be_fetched(installed: Installed) -> None:
    count = "from health.tokens.counters import counter_for; print(counter_for('llama-3').grade)"
    before = installed.run("shell", "--verbosity", "0", "--command", count)
    installed.run("fetch_data")

    assert before == "approximate\n"
    assert installed.run("shell", "--verbosity", "0", "--command", count) == "exact\n"
