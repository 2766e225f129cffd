"""`manage.py context_config`: settings as a file, out and in again."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from health.configured import context_config
from health.models import SettingsChange
from tests.health.compaction.test_configuration import SEED


def run(*args: str) -> str:
    out = StringIO()
    call_command("context_config", *args, stdout=out)
    return out.getvalue()


def test_what_is_taken_out_goes_in_again(db: Any, tmp_path: Path) -> None:
    seed, copy = tmp_path / "seed.yaml", tmp_path / "copy.yaml"
    seed.write_text(SEED.replace("default_limit: 5000", "default_limit: 4500"))

    brought = run("import", str(seed))
    run("export", str(copy))

    assert brought == "default_limit: 5000 → 4500\n1 changed.\n"
    assert copy.read_text() == run("export")
    assert run("import", str(copy)) == "0 changed.\n"
    assert context_config().default_limit == 4500
    assert SettingsChange.objects.get().changed_by is None


def test_a_file_that_makes_no_sense_is_told_with_its_line(db: Any, tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text("context_config:\n  min_limit: 1\n")

    with pytest.raises(CommandError, match=r"bad\.yaml:2: context_config\.min_limit: Must be a whole number"):
        run("import", str(file))

    assert not SettingsChange.objects.exists()


def test_nothing_is_written_over(db: Any, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="exists"):
        run("export", str(tmp_path))
