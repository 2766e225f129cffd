"""The papers tell the truth: settings, links, targets and commands that they name are there."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest
from django.core.management import get_commands

from tests.imports import ROOT

MAKEFILE = ROOT / "Makefile"
MCP_COMMAND = ROOT / "dialogs" / "management" / "commands" / "mcp.py"
OPERATING = ROOT / "docs" / "operating.md"
SETTING = re.compile(r"\b(?:DOMINDS_[A-Z_]*[A-Z]|DATABASE_URL|REDIS_URL)\b")


def papers() -> list[Path]:
    """Every Markdown file of the project, whether committed yet or not."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [ROOT / line for line in sorted(set(listed.stdout.split())) if (ROOT / line).exists()]


each_paper = pytest.mark.parametrize("paper", papers(), ids=lambda paper: str(paper.relative_to(ROOT)))


def settings_read() -> set[str]:
    """Variables that settings.py asks the environment for: they stand in it as whole strings."""
    tree = ast.parse((ROOT / "dominds" / "settings.py").read_text())
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return {text for text in texts if SETTING.fullmatch(text)}


def code_in(text: str) -> str:
    """Fenced blocks and code spans, in which commands stand."""
    fences = re.findall(r"^```.*?^```", text, flags=re.MULTILINE | re.DOTALL)
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return "\n".join([*fences, *re.findall(r"`([^`]+)`", prose)])


def heading_ids(paper: Path) -> set[str]:
    """The anchors that a page of this text has."""
    headings = re.findall(r"^#+ (.+)$", paper.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_setting_is_in_the_table_of_settings() -> None:
    rows = [line for line in OPERATING.read_text().splitlines() if line.startswith("| `")]
    documented = {name for row in rows for name in SETTING.findall(row.split("|")[1])}

    assert documented == settings_read()


@each_paper
def test_no_paper_names_a_setting_that_is_not_there(paper: Path) -> None:
    named = set(SETTING.findall(paper.read_text()))

    # Some are read by the Makefile, before there is anything that could read settings; a client's key, by the command.
    elsewhere = "".join(path.read_text() for path in (MAKEFILE, MCP_COMMAND))
    assert named <= settings_read() | set(SETTING.findall(elsewhere))


@each_paper
def test_every_relative_link_leads_somewhere(paper: Path) -> None:
    prose = re.sub(r"^```.*?^```", "", paper.read_text(), flags=re.MULTILINE | re.DOTALL)
    links = [link for link in re.findall(r"\]\(([^)\s]+)\)", prose) if "://" not in link]

    for link in links:
        path, _, anchor = link.partition("#")
        target = (paper.parent / path) if path else paper
        assert target.exists(), link
        assert not anchor or anchor in heading_ids(target), link


@each_paper
def test_every_make_target_that_is_named_exists(paper: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    named = set(re.findall(r"\bmake ([a-z][a-z-]*)", code_in(paper.read_text())))

    assert named <= targets


@each_paper
def test_every_command_that_is_named_exists(paper: Path) -> None:
    named = set(re.findall(r"\bmanage\.py ([a-z][a-z_]*)", code_in(paper.read_text())))

    assert named <= get_commands().keys()


@pytest.mark.parametrize("record", sorted((ROOT / "docs" / "decisions").glob("*.md")), ids=lambda record: record.stem)
def test_a_decision_record_is_short_and_complete(record: Path) -> None:
    text = record.read_text()

    assert len(text.splitlines()) < 40
    assert re.match(rf"# {int(record.name[:4])}\. ", text)
    assert all(f"**{part}.**" in text for part in ("Context", "Decision", "Consequence"))


def test_the_rules_for_readers_fail_where_they_should(tmp_path: Path) -> None:
    paper = tmp_path / "paper.md"
    paper.write_text("# A Title, here\n\n`make nothing` [x](gone.md)\n\n```sh\nmanage.py nonsense\n```\n")

    assert "make nothing" in code_in(paper.read_text())
    assert "manage.py nonsense" in code_in(paper.read_text())
    assert heading_ids(paper) == {"a-title-here"}
