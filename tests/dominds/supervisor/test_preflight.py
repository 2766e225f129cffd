from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dominds.supervisor import lock, prepare, probes, valkey
from dominds.supervisor.lock import CannotStart
from tests.shell import ROOT
from tests.stack import settings_of


@pytest.fixture
def taken_port() -> Any:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server.getsockname()[1]


def test_a_taken_port_is_said_with_another_to_try(taken_port: int) -> None:
    with pytest.raises(CannotStart, match=rf"port {taken_port}: Address already in use.*--port {taken_port + 1}"):
        prepare.check_port("127.0.0.1", taken_port)


def test_an_address_of_another_machine_is_said() -> None:
    with pytest.raises(CannotStart, match=r"Cannot listen on 192\.0\.2\.1"):
        prepare.check_port("192.0.2.1", 8000)


def test_a_full_disk_is_said_with_both_numbers(tmp_path: Path, settings: Any) -> None:
    settings.DOMINDS_MIN_FREE_MB = 1e12

    with pytest.raises(CannotStart, match=r"Only \d+ MB are free for .*; 1000000000000 MB are needed"):
        prepare.check_disk(tmp_path)


def test_a_data_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()

    with pytest.raises(CannotStart, match="set DOMINDS_DATA_DIR to another folder"):
        prepare.check_writable(file / "data")


def test_a_program_that_is_not_installed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare, "PROGRAMS", ("daphne", "no_such_program"))

    with pytest.raises(CannotStart, match=r"no_such_program not installed. Run `make install`"):
        prepare.check_programs(demo=False)


def test_missing_weights_can_be_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dominds.supervisor.llama_server.weights", lambda: None)

    prepare.check_programs(demo=False)
    with pytest.raises(CannotStart, match="start with --no-demo"):
        prepare.check_programs(demo=True)


def test_a_missing_valkey_is_said(settings: Any) -> None:
    settings.DOMINDS_VALKEY_PROGRAM = "/no/such/program"

    with pytest.raises(CannotStart, match=r"/no/such/program is missing.*set REDIS_URL"):
        valkey.program()


def test_valkeys_password_is_in_a_file_of_its_owner_only(tmp_path: Path, settings: Any) -> None:
    settings.DOMINDS_DATA_DIR = tmp_path
    settings.DOMINDS_VALKEY_PROGRAM = "/bin/sh"
    settings.REDIS_URL = "redis://:pass-word@127.0.0.1:20001/0"

    command = valkey.child().command

    assert "pass-word" not in " ".join(command)
    assert "requirepass pass-word\n" in Path(command[1]).read_text()
    assert Path(command[1]).stat().st_mode & 0o777 == 0o600


def test_one_data_folder_has_one_user_at_a_time(tmp_path: Path) -> None:
    with (
        lock.sole_user(tmp_path, purpose="starting it"),
        pytest.raises(CannotStart, match=r"already runs on .* Stop it before restoring"),
        lock.sole_user(tmp_path, purpose="restoring"),
    ):
        pass

    assert not lock.is_used(tmp_path)


@pytest.mark.parametrize(
    ("host", "reachable"),
    [
        ("127.0.0.1", "127.0.0.1"),
        # A server on every address is reached on loopback.
        ("0.0.0.0", "127.0.0.1"),
        ("::", "[::1]"),
        ("fd00::1", "[fd00::1]"),
        ("example.com", "example.com"),
    ],
)
def test_an_address_to_listen_on_becomes_one_to_open(host: str, reachable: str) -> None:
    assert probes.reachable(host) == reachable


def test_a_server_on_every_address_is_told_to_name_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DOMINDS_ALLOWED_HOSTS", raising=False)
    silent = prepare.host_hint("127.0.0.1")
    said = prepare.host_hint("0.0.0.0")
    monkeypatch.setenv("DOMINDS_ALLOWED_HOSTS", "dominds.example.com")
    obeyed = prepare.host_hint("0.0.0.0")

    assert "DOMINDS_ALLOWED_HOSTS" in said
    assert silent == obeyed == ""


def test_what_an_earlier_start_left_open_is_closed_to_others(tmp_path: Path) -> None:
    data_dir = tmp_path / "var"
    for name in ("dominds.sqlite3", "log/dominds.log", "valkey/appendonlydir/a.aof", "workspaces/a/notes.txt"):
        path = data_dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("secret")
    for path in (data_dir, *data_dir.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)

    prepare.make_private(data_dir)

    modes = {str(path.relative_to(data_dir)): path.stat().st_mode & 0o777 for path in data_dir.rglob("*")}
    assert data_dir.stat().st_mode & 0o777 == 0o700
    assert modes["dominds.sqlite3"] == modes["log/dominds.log"] == modes["valkey/appendonlydir/a.aof"] == 0o600
    assert modes["log"] == modes["valkey/appendonlydir"] == 0o700
    assert modes["workspaces/a/notes.txt"] == 0o644


def test_what_a_command_writes_is_for_its_owner_whatever_the_umask(tmp_path: Path) -> None:
    code = "from django.conf import settings; (settings.DOMINDS_DATA_DIR / 'new').write_text('x')"
    command = [sys.executable, "-c", f"import django; django.setup(); {code}"]
    environment = settings_of(tmp_path / "var", DJANGO_SETTINGS_MODULE="dominds.settings")

    subprocess.run(command, cwd=ROOT, env=environment, umask=0o000, check=True)

    found = [tmp_path / "var", *(tmp_path / "var").iterdir()]
    assert {path.name: path.stat().st_mode & 0o077 for path in found} == {path.name: 0 for path in found}
    assert {"new", "secret_key", "redis_url"} <= {path.name for path in found}
