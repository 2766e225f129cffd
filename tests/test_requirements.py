"""docs/requirements.md: every requirement stands there once, and all the code, tests and papers that it names exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from health.compaction.config import CHAIN_ORDER
from tests.imports import ROOT

PAPER = ROOT / "docs" / "requirements.md"
STRATEGIES = ROOT / "tests" / "health" / "compaction" / "strategies"
# How many requirements each specification states.
STATED = {"H": 80, "L": 127, "M": 66, "C": 154}
NAMED = re.compile(r"`([\w./-]+)::([^`]+)`")


class Row(NamedTuple):
    id: str
    where: str
    test: str


def rows() -> list[Row]:
    found = re.findall(r"^\| ([A-Z]\d+) \| [^|]+ \| ([^|]*) \| ([^|]*) \|$", PAPER.read_text(), flags=re.MULTILINE)
    return [Row(*cells) for cells in found]


@cache
def names_of(path: Path) -> frozenset[str]:
    """What a module defines: `name`, and `Class.name` of what stands in a class."""
    return frozenset(_defined(ast.parse(path.read_text()).body))


def _defined(body: list[ast.stmt], prefix: str = "") -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield prefix + node.name
            yield from _defined(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + node.name
        else:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            inside = (name for target in targets if target is not None for name in ast.walk(target))
            yield from (prefix + name.id for name in inside if isinstance(name, ast.Name))


def is_there(file: str, name: str) -> bool:
    """A name that a module defines; of a test its class may be left out; of any other file words that stand in it."""
    path = ROOT / file
    if not path.is_file():
        return False
    if path.suffix != ".py":
        return name in path.read_text()
    names = names_of(path)
    return name in names or (file.startswith("tests/") and any(one.endswith(f".{name}") for one in names))


def test_every_requirement_stands_there_once() -> None:
    stated = [f"{letter}{number}" for letter, count in STATED.items() for number in range(1, count + 1)]

    assert [row.id for row in rows()] == stated


def test_what_a_row_names_is_there() -> None:
    named = [(row.id, *one) for row in rows() for one in NAMED.findall(row.where + row.test)]

    assert len(named) > 800
    assert [one for one in named if not is_there(*one[1:])] == []


def test_the_last_cell_names_tests_and_the_one_before_it_none() -> None:
    misplaced = [row.id for row in rows() if "::test_" in row.where]
    misnamed = [
        (row.id, file, name)
        for row in rows()
        for file, name in NAMED.findall(row.test)
        if not (file.startswith("tests/") and name.startswith("test_"))
    ]

    assert (misplaced, misnamed) == ([], [])


def test_a_row_that_is_otherwise_names_the_paper_that_says_so() -> None:
    untested = [row for row in rows() if not NAMED.search(row.test)]
    untold = [row.id for row in untested if not re.search(r"nothing to |not met", row.test)]
    unwritten = [row.id for row in rows() if re.search(r"not met|different", row.test) and ".md)" not in row.test]

    assert (untold, unwritten) == ([], [])


@pytest.mark.parametrize("strategy", CHAIN_ORDER)
def test_each_strategy_has_twenty_tests_and_more(strategy: str) -> None:
    assert sum(name.startswith("test_") for name in names_of(STRATEGIES / f"test_{strategy}.py")) >= 20


def test_what_is_not_there_is_found_out() -> None:
    here = "tests/test_requirements.py"

    assert is_there(here, "Row.where")
    assert is_there("docs/requirements.md", "# Requirements")
    assert not is_there(here, "Row.nowhere")
    assert not is_there(here, "nowhere")
    assert not is_there("tests/test_nowhere.py", "rows")
