"""The system checks: silent by default, and a hint for each thing that is odd."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.checks import run_checks

from dialogs import checks
from dialogs.llms.writes.catalogue import load_catalogue
from dialogs.models import LLM
from dominds.management.commands.doctor import limits

SQLITE = {"default": {"ENGINE": "django.db.backends.sqlite3"}}
POSTGRES = {"default": {"ENGINE": "django.db.backends.postgresql"}}


@pytest.mark.parametrize(
    ("check", "values", "found"),
    [
        (checks.check_secret_key, {"SECRET_KEY": "x7" * 16}, "dialogs.W001"),
        (checks.check_secret_key, {"SECRET_KEY": "short-but-mixed-1"}, "dialogs.W001"),
        (checks.check_secret_key, {"SECRET_KEY": "abcdefghijklmnopqrstuvwxyz0123456789"}, None),
        (checks.check_debug, {"DOMINDS_DEBUG": True, "DOMINDS_HOST": "192.0.2.1"}, "dialogs.W002"),
        (checks.check_debug, {"DOMINDS_DEBUG": True, "DOMINDS_HOST": "127.0.0.1"}, None),
        (checks.check_debug, {"DOMINDS_DEBUG": False, "DOMINDS_HOST": "192.0.2.1"}, None),
        (checks.check_allowed_hosts, {"ALLOWED_HOSTS": ["a.test", "*"]}, "dialogs.W003"),
        (checks.check_allowed_hosts, {"ALLOWED_HOSTS": ["a.test"]}, None),
        (checks.check_scripted, {"DOMINDS_SCRIPTED": True}, "dialogs.W004"),
        (checks.check_scripted, {"DOMINDS_SCRIPTED": False}, None),
        (checks.check_shared_database, {"DATABASES": SQLITE, "REDIS_URL": "redis://r.test/0"}, "dialogs.W005"),
        (checks.check_shared_database, {"DATABASES": POSTGRES, "REDIS_URL": "redis://r.test/0"}, None),
        (checks.check_shared_database, {"DATABASES": SQLITE, "REDIS_URL": "redis://:x@127.0.0.1:7/0"}, None),
        (checks.check_shared_database, {"DATABASES": SQLITE, "REDIS_URL": "unix:///run/redis.sock"}, None),
        (checks.check_lease, {"DOMINDS_LEASE_SECONDS": 4.9}, "dialogs.W006"),
        (checks.check_lease, {"DOMINDS_LEASE_SECONDS": 5.0}, None),
        (checks.check_catalogue, {"DOMINDS_LLM_FILE": "/nowhere", "DOMINDS_LLM_FILE_REQUIRED": True}, "dialogs.W007"),
    ],
)
def test_an_odd_setting_is_told_with_a_hint(
    check: Any, values: dict[str, Any], found: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in values.items():
        monkeypatch.setattr(checks.settings, name, value)

    messages = check()

    assert [message.id for message in messages] == ([found] if found else [])
    assert all(message.hint for message in messages)


def test_a_threshold_that_is_no_number_is_told_by_check_and_by_doctor_and_stops_nothing(
    tmp_path: Path, settings: LazySettings, db: None
) -> None:
    model = "        context_length: 1000\n        critical_max_tokens: -5\n"
    path = tmp_path / "llm.yaml"
    path.write_text(f"providers:\n  a:\n    apiType: openai\n    baseUrl: http://h\n    models:\n      m:\n{model}")
    settings.DOMINDS_LLM_FILE = path

    load_catalogue()

    told = "line 8: providers.a.models.m.critical_max_tokens: must not be less than 1. The default counts."
    (message,) = checks.check_catalogue()
    assert (message.id, told in message.msg) == ("dialogs.W008", True)
    assert told in next(finding.text for finding in limits() if finding.name == "catalogue")
    assert LLM.objects.get(model_id="m").critical_max_tokens is None


def test_odd_limits_of_a_model_are_told_when_the_database_is_checked(llm: LLM) -> None:
    LLM.objects.update(optimal_max_tokens=950)

    found = run_checks(tags=["database"], databases=["default"])

    assert [message.id for message in found] == ["health.W001"]
    assert "scripted/tiny" in found[0].msg


def test_models_that_are_switched_off_are_not_checked(llm: LLM) -> None:
    LLM.objects.update(optimal_max_tokens=950, enabled=False)

    assert run_checks(tags=["database"], databases=["default"]) == []


def test_the_usual_check_leaves_the_database_alone(django_assert_num_queries: Any, llm: LLM) -> None:
    LLM.objects.update(optimal_max_tokens=950)

    with django_assert_num_queries(0):
        found = run_checks()

    assert not [message for message in found if message.id.startswith("health.")]


def test_the_default_configuration_is_silent(tmp_path: Path) -> None:
    ours = ("DOMINDS_", "REDIS_", "DATABASE_")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    command = [sys.executable, "manage.py", "check", "--database", "default"]

    done = subprocess.run(
        command, env=inherited | {"DOMINDS_DATA_DIR": str(tmp_path)}, capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "System check identified no issues (0 silenced).\n"
