"""Schemathesis: a client that knows only the published document, and tries what that allows and what it does not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients.conftest import Served
from tests.dialogs.driver.conftest import said
from tests.stack import ROOT

pytestmark = pytest.mark.stack

PROGRAM = Path(sys.executable).with_name("schemathesis")


SOME = ("--phases", "fuzzing,stateful", "--max-examples", "15")
MANY = ("--max-examples", "1000")


@pytest.mark.parametrize("how", [SOME, pytest.param(MANY, marks=pytest.mark.long)], ids=["some", "many"])
def test_schemathesis_finds_nothing(served: Served, tmp_path: Path, how: tuple[str, ...]) -> None:
    served.play(said(700, "Noted."))

    key = ("--header", f"Authorization: Bearer {served.key}")
    options = (
        "--exclude-checks",
        "positive_data_acceptance",
        "--request-timeout",
        "60",
        "--generation-database",
        "none",
    )

    ran = subprocess.run(
        [PROGRAM, "run", f"{served.url}/openapi.json", *key, *options, *how],
        cwd=tmp_path,
        env={**os.environ, "SCHEMATHESIS_HOOKS": "tests.clients.schemathesis_hooks", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )

    assert ran.returncode == 0, ran.stdout[:6000] + ran.stderr[-2000:]
    assert "No issues found" in ran.stdout
