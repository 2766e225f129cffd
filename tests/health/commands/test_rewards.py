"""`manage.py rewards export`: what is printed, and what is refused."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from health import reward_log
from health.models import SettingsChange
from tests.health.test_reward_log import NOON, a_row


@pytest.fixture(autouse=True)
def folder(settings: Any, tmp_path: Path) -> None:
    settings.DOMINDS_DATA_DIR = tmp_path


def exported(*options: str) -> list[dict[str, Any]]:
    out = StringIO()
    call_command("rewards", "export", *options, stdout=out)
    return [json.loads(line) for line in out.getvalue().splitlines()]


@pytest.mark.django_db
def test_it_prints_one_object_a_line_and_leaves_a_trace() -> None:
    reward_log.append(a_row())

    assert exported() == [a_row()]
    assert SettingsChange.objects.values_list("key", "after").get() == ("reward_log.export", "1")


@pytest.mark.django_db
@pytest.mark.parametrize(("options", "count"), [(["--since", "2026-12-01"], 0), (["--since", "2026-11-30"], 1)])
def test_a_day_begins_at_midnight(options: list[str], count: int) -> None:
    reward_log.append(a_row(at=NOON))

    assert len(exported(*options)) == count


@pytest.mark.django_db
def test_only_the_llm_that_is_asked_for() -> None:
    reward_log.append(a_row(llm="cloud/large"))
    reward_log.append(a_row())

    assert exported("--llm", "cloud/large") == [a_row(llm="cloud/large")]


def test_what_is_no_date_is_refused() -> None:
    with pytest.raises(CommandError, match="is no date"):
        exported("--since", "yesterday")
