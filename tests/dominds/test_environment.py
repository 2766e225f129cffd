"""A wrong setting stops any command with one line that names the variable, and no traceback."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from dominds import environment
from tests.stack import manage, settings_of


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DOMINDS_LEASE_SECONDS", "soon"),
        ("DOMINDS_LEASE_SECONDS", "0"),
        ("DOMINDS_LEASE_SECONDS", "-1"),
        ("DOMINDS_LEASE_SECONDS", "30s"),
        ("DOMINDS_LEASE_SECONDS", "nan"),
        ("DOMINDS_LEASE_SECONDS", "inf"),
    ],
)
def test_a_number_must_be_above_zero(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)

    with pytest.raises(ImproperlyConfigured, match=f"{name} must be .*{value}"):
        environment.positive(name, 30)


@pytest.mark.parametrize("value", ["-1", "1.5", "1_000", "many", "٣"])
def test_a_whole_number_must_be_one(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOMINDS_API_REQUESTS_PER_MINUTE", value)

    with pytest.raises(ImproperlyConfigured, match=f"DOMINDS_API_REQUESTS_PER_MINUTE must be .*{value}"):
        environment.whole("DOMINDS_API_REQUESTS_PER_MINUTE", 0)


@pytest.mark.parametrize(("value", "expected"), [("", 7), ("0", 0), (" 60 ", 60)])
def test_a_whole_number_may_be_zero(value: str, expected: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOMINDS_API_REQUESTS_PER_MINUTE", value)

    assert environment.whole("DOMINDS_API_REQUESTS_PER_MINUTE", 7) == expected


@pytest.mark.parametrize("value", ["0", "1.5", "65536", "http"])
def test_a_port_must_be_one(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOMINDS_PORT", value)

    with pytest.raises(ImproperlyConfigured, match="DOMINDS_PORT must be"):
        environment.port("DOMINDS_PORT", 8000)


@pytest.mark.parametrize(
    ("value", "expected"), [("yes", True), ("1", True), ("ON", True), ("no", False), ("0", False), ("", False)]
)
def test_a_flag_understands_the_usual_words(value: str, expected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOMINDS_DEBUG", value)

    assert environment.flag("DOMINDS_DEBUG", default=False) is expected


def test_a_flag_refuses_other_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOMINDS_DEBUG", "perhaps")

    with pytest.raises(ImproperlyConfigured, match="DOMINDS_DEBUG must be yes or no"):
        environment.flag("DOMINDS_DEBUG", default=False)


def test_a_word_must_be_a_known_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOMINDS_LOG_LEVEL", "loud")

    with pytest.raises(ImproperlyConfigured, match="DOMINDS_LOG_LEVEL is 'loud'"):
        environment.one_of("DOMINDS_LOG_LEVEL", "INFO", ("INFO", "ERROR"))


def test_what_is_kept_is_made_once_and_readable_by_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "data" / "secret"

    first = environment.stored_once(path, lambda: "one")
    second = environment.stored_once(path, lambda: "two")

    assert (first, second) == ("one", "one")
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(path.parent.iterdir()) == [path]


def test_the_embedded_address_has_a_password_and_stays_on_this_machine() -> None:
    one, other = environment.embedded_redis(), environment.embedded_redis()

    assert one.endswith("/0")
    assert "@127.0.0.1:" in one
    assert one.split("@")[0] != other.split("@")[0]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DATABASE_URL", "nonsense"),
        ("DATABASE_URL", "postgres://user@host:port/name"),
        ("REDIS_URL", "localhost:6379"),
        ("DOMINDS_TIME_ZONE", "Mars"),
        ("DOMINDS_DATA_DIR", "/dev/null"),
    ],
)
def test_a_wrong_setting_is_one_line_and_a_failure(name: str, value: str, tmp_path: Path) -> None:
    done = manage("check", environment={**settings_of(tmp_path), name: value}, check=False)

    assert done.returncode == 1
    assert done.stderr.startswith(f"Wrong setting: {name}")
    assert done.stderr.count("\n") == 1
