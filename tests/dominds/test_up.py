"""`manage.py up` as a person starts it: real processes, one stack for as many tests as can share it."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from dominds import backups
from tests.dominds.supervisor.test_children import is_alive, wait_for
from tests.shell import ROOT
from tests.stack import Stack, manage, running_stack, settings_of

pytestmark = pytest.mark.stack
Refusals = dict[str, "Future[subprocess.CompletedProcess[str]]"]


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory, refusals: Refusals) -> Iterator[Stack]:
    """With the demo model, in an empty folder: here everything runs that `up` can run. Started far from its code, where
    a file has the name of a package of ours."""
    folder = tmp_path_factory.mktemp("elsewhere")
    (folder / "health.py").write_text("raise ImportError")
    with running_stack(tmp_path_factory.mktemp("up"), migrates=True, folder=folder) as found:
        yield found


# --- While it runs ----------------------------------------------------------------------------
def test_it_prints_one_line_with_the_address_and_a_way_in(stack: Stack) -> None:
    assert stack.output.count("\n") == 1
    assert stack.output.startswith(f"Dominds runs at {stack.url}/")
    assert stack.sign_in_url.startswith(f"{stack.url}/welcome/")


def test_the_page_answers_and_wants_a_sign_in(stack: Stack) -> None:
    assert stack.answers()
    assert httpx.get(f"{stack.url}/admin/", follow_redirects=False).status_code == 302


def test_the_link_signs_in(stack: Stack) -> None:
    with httpx.Client(follow_redirects=True) as browser:
        page = browser.get(stack.sign_in_url)

    assert page.status_code == 200


def test_every_child_is_named_in_the_log(stack: Stack) -> None:
    for name in ("valkey", "demo", "web"):
        stack.wait_for_line(f"{name:<8} | answers after")

    assert (stack.data_dir / "log" / "dominds.log").read_text().count("answers after") >= 3


def test_warnings_about_settings_are_lines_in_the_log(stack: Stack) -> None:
    assert "up       | dialogs.W004: DOMINDS_SCRIPTED is on" in stack.log()


def test_no_secret_reaches_the_log_file(stack: Stack) -> None:
    log = (stack.data_dir / "log" / "dominds.log").read_text()

    assert "/welcome/" not in log
    assert (stack.data_dir / "secret_key").read_text() not in log
    assert (stack.data_dir / "redis_url").read_text().split("@")[0] not in log


def test_the_demo_can_be_chosen_and_says_what_it_is(stack: Stack) -> None:
    said = stack.shell(
        "from dialogs.models import Agent; a = Agent.objects.get(slug='demo');"
        "print(a.is_demo, a.enabled, a.llm.context_length, a.llm.optimal_max_tokens, 'small' in a.description)"
    )

    assert said == "True True 896 672 True"


def test_the_doctor_finds_it_well(stack: Stack) -> None:
    stack.wait_for_line("demo     | answers")
    # The page answers before the workers do.
    asked = (stack.run_manage("doctor", check=False) for _ in range(30))
    done = next(one for one in asked if "ok     workers: 2 answer" in one.stdout)

    assert done.returncode == 0, done.stdout
    assert f"ok     web: answers at {stack.url}" in done.stdout
    assert "ok     provider demo" in done.stdout


def test_a_second_one_on_the_same_data_is_refused(stack: Stack) -> None:
    done = stack.run_manage("up", "--port", "1", check=False)

    assert done.returncode == 1
    assert done.stderr.startswith("Dominds already runs on ")
    assert done.stderr.count("\n") == 1


def test_restoring_a_backup_meanwhile_is_refused(stack: Stack) -> None:
    stack.run_manage("backup", str(stack.data_dir / "backup.tar.gz"))

    done = stack.run_manage("restore", str(stack.data_dir / "backup.tar.gz"), "--yes", check=False)

    assert done.returncode == 1
    assert "Stop it before restoring a backup" in done.stderr


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """With two web processes."""
    with running_stack(tmp_path_factory.mktemp("two"), "--no-demo", DOMINDS_WEB_PROCESSES="2") as found:
        yield found


def test_each_of_two_web_processes_serves_alone_and_one_that_dies_is_started_again(two: Stack) -> None:
    for silent in ("web", "web-2"):
        os.kill(two.pid(silent), signal.SIGSTOP)
        two.wait_until(two.answers)
        assert all(two.answers() for _ in range(10))
        os.kill(two.pid(silent), signal.SIGCONT)

    os.kill(two.pid("web-2"), signal.SIGKILL)

    two.wait_for_line("up       | web-2 was started again as process")
    assert "up       | web-2 was killed by SIGKILL" in two.log()
    assert two.answers()


def test_ctrl_c_stops_every_child_and_leaves_no_process(two: Stack) -> None:
    """Also one that was started again. The last test of this stack."""
    children = two.pids()

    status = two.stop(signal.SIGINT)

    assert len(children) == 5
    assert status == 0
    assert not any(is_alive(pid) for pid in children)
    assert not list((two.data_dir / "run").glob("*.pid"))
    assert "Traceback" not in two.log()


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Workers alone, on data of an older Dominds, whose Redis port another program took meanwhile."""
    data_dir = tmp_path_factory.mktemp("workers")
    manage("migrate", "auth", environment=settings_of(data_dir))
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        (data_dir / "redis_url").write_text(f"redis://:old@127.0.0.1:{other.getsockname()[1]}/0")
        with running_stack(data_dir, "--worker-only", "--no-demo") as found:
            found.stop(signal.SIGTERM)
            yield found


def test_workers_alone_need_no_web_server_and_stop_as_well(workers: Stack) -> None:
    assert workers.output == "Dominds' workers run.\n"
    assert workers.process.returncode == 0
    assert "web" not in workers.log()


def test_an_embedded_redis_whose_port_is_taken_moves(workers: Stack) -> None:
    assert "valkey   | answers" in workers.log()
    assert ":old@" not in (workers.data_dir / "redis_url").read_text()


@pytest.mark.skipif(bool(os.environ.get("DATABASE_URL")), reason="a copy of the file that SQLite is")
def test_a_database_is_copied_before_it_is_migrated(workers: Stack) -> None:
    (copy,) = (workers.data_dir / "backups").glob("before-migrating-*.tar.gz")

    assert str(copy) in workers.log()
    assert copy.stat().st_mode & 0o777 == 0o600
    # `restore` takes it.
    assert backups.read_manifest(copy).engine == "sqlite"


# --- What keeps it from starting --------------------------------------------------------------
class Refused(NamedTuple):
    """An `up` with these options and settings, and what the one line says that it ends with."""

    line: str
    settings: dict[str, str] = {}
    options: tuple[str, ...] = ()


REFUSED = {
    "a taken port": Refused(r"Cannot listen on 127\.0\.0\.1 port \d+", options=("--port", "{taken}")),
    "a full disk": Refused("MB are free", {"DOMINDS_MIN_FREE_MB": "1e12"}),
    "a missing program": Refused("Run `make install`", {"DOMINDS_VALKEY_PROGRAM": "/no/such/valkey"}),
    "a Redis that does not answer": Refused(
        "Redis does not answer at REDIS_URL", {"REDIS_URL": "redis://127.0.0.1:1/0"}
    ),
    "a database that does not answer": Refused(
        "The database dominds on 127.0.0.1 cannot be used",
        {"DATABASE_URL": "postgres://user:pass-word@127.0.0.1:1/dominds"},
    ),
    "a file that is no database": Refused("file is not a database", {"DATABASE_URL": "sqlite:///{folder}/letter.txt"}),
}
NO_PORT, DYING = Refused("", options=("--port", "70000")), Refused("", {"DOMINDS_VALKEY_PROGRAM": "/bin/false"})


@pytest.fixture(scope="module")
def refusals(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Refusals]:
    """How each of them ends, all begun before the first test: some wait for who does not answer, or to die again."""
    folder = tmp_path_factory.mktemp("refused")
    (folder / "letter.txt").write_text("Dear Bob, " * 100)
    every = {**REFUSED, "no port": NO_PORT, "dying": DYING}
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(len(every)) as threads:
        words = {"folder": str(folder), "taken": str(server.getsockname()[1])}

        def up(name: str) -> subprocess.CompletedProcess[str]:
            options = [one.format(**words) for one in every[name].options]
            settings = {key: value.format(**words) for key, value in every[name].settings.items()}
            environment = settings_of(folder / name, **settings)
            return manage("up", "--no-demo", *options, environment=environment, check=False)

        yield {name: threads.submit(up, name) for name in every}


@pytest.mark.parametrize("why", REFUSED)
def test_what_keeps_it_from_starting_is_said_in_one_line(refusals: Refusals, why: str) -> None:
    done = refusals[why].result()

    assert done.returncode == 1, done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert not done.stdout
    assert re.search(REFUSED[why].line, done.stderr)
    assert "pass-word" not in done.stderr


def test_a_child_that_cannot_live_ends_all_with_one_last_line(refusals: Refusals) -> None:
    done = refusals["dying"].result()

    assert done.returncode == 1
    assert "valkey ended with status 1; that was 5 times within 60 s" in done.stderr.splitlines()[-1]


def test_a_port_that_is_none_is_said(refusals: Refusals) -> None:
    done = refusals["no port"].result()

    assert done.returncode != 0
    assert "is not a port from 1 to 65535" in done.stderr


# --- As tests start it ------------------------------------------------------------------------
A_TEST_RUN = """
import sys, time
from pathlib import Path
from tests.stack import running_stack
with running_stack(Path(sys.argv[1]), "--no-demo", wait=False, migrates=True) as stack:
    print(stack.process.pid, flush=True)
    time.sleep(60)
"""


def test_it_ends_with_a_test_run_that_is_killed(tmp_path: Path) -> None:
    run = subprocess.Popen([sys.executable, "-c", A_TEST_RUN, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE)
    assert run.stdout
    pid = int(run.stdout.readline())
    # The command, not the leash that becomes it.
    wait_for(lambda: "leash.py" not in Path(f"/proc/{pid}/cmdline").read_text())

    run.kill()
    run.communicate()

    wait_for(lambda: not is_alive(pid))
