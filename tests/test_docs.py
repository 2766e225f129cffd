"""The papers tell the truth: settings, links, targets and commands that they name are there."""

from __future__ import annotations

import ast
import re
import subprocess
from collections import Counter
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

import pytest
from django.core.management import get_commands
from markdown_it import MarkdownIt

from docs.context_fills import WORDS, drawn
from tests.imports import ROOT

MAKEFILE = ROOT / "Makefile"
MCP_COMMAND = ROOT / "dialogs" / "management" / "commands" / "mcp.py"
GLOSSARY = ROOT / "docs" / "glossary.md"
OPERATING = ROOT / "docs" / "operating.md"
# Numbers of rows in the plans that came before the code: a stranger cannot look them up.
PLANNED = re.compile(r"\b(?:DL|DC|DH|DM|DX)\d+\b|(?<!--)\b[Ss]eed \d")
FENCE = re.compile(r"^```.*?^```", flags=re.MULTILINE | re.DOTALL)
# Pages for who changes Dominds: they stand in English only, as do the records in docs/decisions.
FOR_MAINTAINERS = {"architecture", "engine-measured", "open-findings", "requirements", "testing"}
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
    fences = FENCE.findall(text)
    prose = FENCE.sub("", text)
    return "\n".join([*fences, *re.findall(r"`([^`]+)`", prose)])


def heading_ids(paper: Path) -> list[str]:
    """The anchors that a page of this text has, in order."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", paper.read_text()), flags=re.MULTILINE)
    return [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]


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
    prose = FENCE.sub("", paper.read_text())
    links = [link for link in re.findall(r"\]\(([^)\s]+)\)", prose) if "://" not in link]

    for link in links:
        path, _, anchor = link.partition("#")
        target = (paper.parent / path) if path else paper
        assert target.exists(), link
        assert not anchor or anchor in heading_ids(target), link


@each_paper
def test_no_star_of_an_emphasis_is_left_to_be_read(paper: Path) -> None:
    tokens = MarkdownIt("commonmark").enable("table").parse(paper.read_text())
    texts = [child.content for token in tokens for child in token.children or [] if child.type == "text"]

    # In Chinese: a star behind a sign, as in “*…*的”, closes nothing unless a space comes after it.
    assert [text for text in texts if "*" in text] == []


@each_paper
def test_every_make_target_that_is_named_exists(paper: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    named = set(re.findall(r"\bmake ([a-z][a-z-]*)", code_in(paper.read_text())))

    assert named <= targets


@each_paper
def test_every_command_that_is_named_exists(paper: Path) -> None:
    named = set(re.findall(r"\bmanage\.py ([a-z][a-z_]*)", code_in(paper.read_text())))

    assert named <= get_commands().keys()


def glossary_rows() -> list[tuple[str, str, str]]:
    """Term, file and name of each row of the glossary."""
    rows = re.findall(r"^\| (.+?) \| `(\S+\.py)` `(\w+)` \|", GLOSSARY.read_text(), flags=re.MULTILINE)
    assert len(rows) > 50
    return rows


@pytest.mark.parametrize("name", WORDS)
def test_a_picture_is_as_its_script_draws_it(name: str) -> None:
    assert (ROOT / "docs" / name).read_text(encoding="utf-8") == drawn(WORDS[name])


@pytest.mark.parametrize(("term", "file", "name"), glossary_rows(), ids=lambda value: value)
def test_what_the_glossary_names_is_where_it_says(term: str, file: str, name: str) -> None:
    source = (ROOT / file).read_text()

    assert re.search(rf"^\s*(?:(?:class|def|async def) {name}\b|{name}\s*[:=])", source, flags=re.MULTILINE), term


@pytest.mark.parametrize("record", sorted((ROOT / "docs" / "decisions").glob("*.md")), ids=lambda record: record.stem)
def test_a_decision_record_is_short_and_complete(record: Path) -> None:
    text = record.read_text()

    assert len(text.splitlines()) < 40
    assert re.match(rf"# {int(record.name[:4])}\. ", text)
    assert all(f"**{part}.**" in text for part in ("Context", "Decision", "Consequence"))


@pytest.mark.parametrize("package", ["dialogs", "health", "dominds", "tests", "benchmarks"])
def test_code_names_no_row_of_a_plan(package: str) -> None:
    about_rows = {"test_docs.py", "test_requirements.py"}
    named = [path for path in (ROOT / package).rglob("*.py") if PLANNED.search(path.read_text())]

    assert not [path for path in named if path.name not in about_rows]
    assert PLANNED.search("as DC33 says")


def test_the_rules_for_readers_fail_where_they_should(tmp_path: Path) -> None:
    paper = tmp_path / "paper.md"
    paper.write_text("# A Title, here\n\n`make nothing` [x](gone.md)\n\n```sh\nmanage.py nonsense\n```\n")

    assert "make nothing" in code_in(paper.read_text())
    assert "manage.py nonsense" in code_in(paper.read_text())
    assert heading_ids(paper) == ["a-title-here"]


class Section(NamedTuple):
    """A heading, and what stands under it that is the same in every language. The figures are those of its tables."""

    heading: str
    code: list[str]
    links: list[str]
    names: list[str]
    figures: list[str]

    @property
    def level(self) -> int:
        return len(self.heading) - len(self.heading.lstrip("#"))


def without_comments(fence: str) -> str:
    """The code of a block: comments are written in the page's language."""
    lines = [re.sub(r"(?:^|\s)#\s.*", "", line).rstrip() for line in fence.splitlines()]
    return "\n".join(line for line in lines if line)


def target(page: Path, link: str) -> str:
    """Where a relative link leads, whatever the language: a heading is told by its number."""
    path, _, anchor = link.partition("#")
    neutral = re.sub(r"-zh(?=-[a-z-]+\.png|\.png)", "-en", path.replace(".zh-Hans", ""))
    ids = heading_ids(page.parent / path if path else page) if anchor else []
    return f"{neutral}#{ids.index(anchor) if anchor in ids else anchor}" if anchor else neutral


def sections(page: Path) -> list[Section]:
    """A page cut at its headings; what stands above the first one comes first."""
    fences = FENCE.findall(page.read_text())
    pieces = re.split(r"^(#+ .+)$", FENCE.sub("\0", page.read_text()), flags=re.MULTILINE)
    found = []
    for heading, body in zip(["", *pieces[1::2]], pieces[::2], strict=True):
        code = [without_comments(fences.pop(0)) for _ in range(body.count("\0"))]
        links = [target(page, link) for link in re.findall(r"\]\(([^)\s]+)\)", body) if "://" not in link]
        names = sorted({" ".join(name.split()) for name in re.findall(r"`([^`]+)`", body)})
        rows = "\n".join(line for line in body.splitlines() if line.startswith("|"))
        found.append(Section(heading, code, links, names, re.findall(r"\d+(?:[.,]\d+)*", rows)))
    return found


def differences(page: Path, twin: Path) -> list[str]:
    """What a page and its twin do not share, each with its heading: whoever changes one of them changes both."""
    told = []
    for ours, theirs in zip_longest(sections(page), sections(twin), fillvalue=Section("(nothing)", [], [], [], [])):
        where = f"{page.name}: {ours.heading or 'top'} | {twin.name}: {theirs.heading or 'top'}"
        if ours.level != theirs.level:
            return [*told, f"{where}: headings of different levels, here or above"]
        for what in ("code", "links", "names", "figures"):
            left, right = Counter(getattr(ours, what)), Counter(getattr(theirs, what))
            if left != right:
                told.append(f"{where}: {what} only here {sorted(left - right)} | {sorted(right - left)}")
    return told


def readers_pages() -> list[Path]:
    """The English pages for those who use or run Dominds."""
    pages = [paper for paper in papers() if paper.parent == ROOT / "docs" and ".zh-Hans" not in paper.name]
    return [ROOT / "README.md", *(page for page in pages if page.stem not in FOR_MAINTAINERS)]


@pytest.mark.parametrize("page", readers_pages(), ids=lambda page: f"{page.parent.name}/{page.stem}")
def test_a_page_for_readers_says_the_same_in_chinese(page: Path) -> None:
    twin = page.with_suffix(".zh-Hans.md")

    assert twin.exists(), f"{page.name} has no {twin.name}"
    told = differences(page, twin)
    assert not told, "\n".join(told)


def test_differences_between_languages_are_told_with_their_heading(tmp_path: Path) -> None:
    page, twin = tmp_path / "p.md", tmp_path / "p.zh-Hans.md"
    page.write_text("[z](p.zh-Hans.md)\n`KEY`\n# One\n```sh\n# why\nmake run\n```\n## Two\n[up](#one)\n")
    twin.write_text("[e](p.md)\n`KEY`\n# 一\n```sh\n# 为什么\nmake run\n```\n## 二\n[上](#一)\n")
    assert differences(page, twin) == []

    twin.write_text("[e](p.md)\n# 一\n```sh\nmake test\n```\n## 二\n[下](#二)\n")
    names, code, links = differences(page, twin)
    assert names == "p.md: top | p.zh-Hans.md: top: names only here ['KEY'] | []"
    assert code.startswith("p.md: # One | p.zh-Hans.md: # 一: code")
    assert links.startswith("p.md: ## Two | p.zh-Hans.md: ## 二: links")
    twin.write_text("[e](p.md)\n`KEY`\n# 一\n```sh\nmake run\n```\n")
    assert differences(page, twin) == [
        "p.md: ## Two | p.zh-Hans.md: (nothing): headings of different levels, here or above"
    ]
