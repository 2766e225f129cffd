"""`manage.py context_config`: settings as a file, out and in again."""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from dialogs.models import Agent
from health.compaction.terms.configuration import load_own
from health.configured import context_config
from health.models import SettingsChange
from tests.health.compaction.terms.test_configuration import DEFAULTS


def run(*args: str) -> str:
    out = StringIO()
    call_command("context_config", *args, stdout=out)
    return out.getvalue()


def test_what_is_taken_out_goes_in_again(db: Any, tmp_path: Path) -> None:
    file, copy = tmp_path / "seed.yaml", tmp_path / "copy.yaml"
    file.write_text(DEFAULTS.replace("default_limit: 5000", "default_limit: 4500"))

    brought = run("import", str(file))
    run("export", str(copy))

    assert brought == "default_limit: 5000 → 4500\n1 changed.\n"
    assert copy.read_text() == run("export")
    assert run("import", str(copy)) == "0 changed.\n"
    assert context_config().default_limit == 4500
    assert SettingsChange.objects.get().changed_by is None


def test_what_agents_have_of_their_own_goes_along(agent: Agent, tmp_path: Path) -> None:
    copy, without = tmp_path / "copy.yaml", tmp_path / "without.yaml"
    run("export", str(without))
    own = load_own("how: chain\nbreaking_strategy: {chain_order: [prioritize_recent]}")
    Agent.objects.update(own_settings=own)
    run("export", str(copy))
    Agent.objects.update(own_settings="")

    brought = run("import", str(copy))
    kept = run("import", str(without))

    assert brought == f"agents.helper.own_settings: — → {own}\n1 changed.\n"
    assert kept == "0 changed.\n"
    assert Agent.objects.get().own_settings == own
    assert copy.read_text() == run("export")
    (tmp_path / "none.yaml").write_text("agents: {helper: }\n")
    assert run("import", str(tmp_path / "none.yaml")).endswith("1 changed.\n")
    assert Agent.objects.get().own_settings == ""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "context_config:\n  goal: 0.5\nagents:\n  nobody: {how: chain}\n",
            ":4: agents.nobody: There is no such agent",
        ),
        ("agents:\n  helper:\n    min_gain: 0.5\n", ":3: agents.helper.min_gain: "),
        ("agents:\n  helper:\n    warning_threshold: 0.6\n", ":2: agents.helper: "),
        (
            "agents:\n  helper:\n    breaking_strategy: {chain_order: [magic]}\n",
            ":2: agents.helper: There is no such str",
        ),
        ("agents: 3\n", ":1: agents: "),
        ("context_config:\n  min_limit: 1\n", ":2: context_config.min_limit: Must be a whole number"),
    ],
)
def test_settings_that_make_no_sense_are_told_with_their_line(
    agent: Agent, tmp_path: Path, text: str, told: str
) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(text)

    with pytest.raises(CommandError, match=re.escape(f"bad.yaml{told}")):
        run("import", str(file))

    assert not SettingsChange.objects.exists()


def test_nothing_is_written_over(db: Any, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="exists"):
        run("export", str(tmp_path))
