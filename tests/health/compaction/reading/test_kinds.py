"""The kind of a message is judged by what its text looks like."""

from __future__ import annotations

import pytest

from health.compaction.reading.messages import kind_of
from health.compaction.terms.units import Kind, Role

PYTHON = "def area(r):\n    return 3.14 * r * r\n\nclass Circle:\n    pass\n"
GO = 'package main\n\nimport "fmt"\n\nfunc main() {\n\tfmt.Println("hi")\n}\n'
NUMBERED = "     1\timport os\n     2\tclass Reader:\n     3\t    def read(self):\n     4\t        return None\n"
LOG = (
    "2026-01-02 03:04:05 INFO start\n2026-01-02 03:04:06 ERROR no route\n    at line 4\n2026-01-02 03:04:07 INFO end\n"
)
SYSLOG = "Jan  2 03:04:05 host a: x\nJan  2 03:04:06 host a: y\nJan  2 03:04:07 host a: z"
LEVELS = "[INFO] one\n[WARN] two\nERROR three\nDEBUG four"


@pytest.mark.parametrize(
    ("text", "role", "kind"),
    [
        (f"Here it is:\n```python\n{PYTHON}```\n", Role.ASSISTANT, Kind.CODE),
        (f"~~~\n{GO}~~~", Role.USER, Kind.CODE),
        (PYTHON, Role.TOOL, Kind.CODE),
        (GO, Role.TOOL, Kind.CODE),
        (NUMBERED, Role.TOOL, Kind.CODE),
        ("A long explanation of what it does. " * 9 + "\n```\nx = 1\n```", Role.ASSISTANT, Kind.MESSAGE),
        (LOG, Role.TOOL, Kind.LOG),
        (LOG, Role.USER, Kind.LOG),
        (SYSLOG, Role.TOOL, Kind.LOG),
        (LEVELS, Role.TOOL, Kind.LOG),
        ("ERROR it failed", Role.USER, Kind.MESSAGE),
        ("- [ ] buy bread\n- [x] sweep\n1. [ ] go home\n", Role.ASSISTANT, Kind.PLAN_REF),
        ("## Plan\nFirst we look, then we leap.", Role.USER, Kind.PLAN_REF),
        ("plan-ref-7", Role.USER, Kind.PLAN_REF),
        ("待办：\n买面包", Role.USER, Kind.PLAN_REF),
        ("The plan is to go home.", Role.USER, Kind.MESSAGE),
        ('{"rows": [1, 2, 3]}', Role.TOOL, Kind.OTHER),
        ("three files found", Role.TOOL, Kind.OTHER),
        ("Good morning!", Role.USER, Kind.MESSAGE),
        ("你好", Role.ASSISTANT, Kind.MESSAGE),
        ("", Role.TOOL, Kind.MESSAGE),
        (" \n\t\n", Role.USER, Kind.MESSAGE),
        ("def not_code_but_a_prompt():\n    return 1", Role.SYSTEM, Kind.MESSAGE),
    ],
)
def test_the_kind_follows_the_text(text: str, role: Role, kind: Kind) -> None:
    assert kind_of(text, role) == kind


@pytest.mark.parametrize("pattern", ["```\n~~~\n", "; ", "[", "- [ ]", " "])
def test_a_huge_text_is_judged_by_its_beginning(pattern: str) -> None:
    assert kind_of(pattern * (10_000_000 // len(pattern)), Role.TOOL) in Kind
