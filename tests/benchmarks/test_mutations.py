"""What is changed of a module to see whether its tests notice, and what is left alone."""

from __future__ import annotations

from textwrap import dedent

import pytest

from benchmarks.mutants import diff
from benchmarks.mutations import mutants


def changed(source: str) -> list[str]:
    """The whole source after each change."""
    text = dedent(source).encode()
    return [mutant.of(text).decode() for mutant in mutants(text)]


@pytest.mark.parametrize(
    ("expression", "others"),
    [
        ("a < b", ["(a <= b)"]),
        ("a is None", ["(a is not None)"]),
        ("a <= b == c", ["(a < b == c)", "(a <= b != c)"]),
        ("a and b", ["(a or b)", "b", "a"]),
        ("a + b", ["(a - b)"]),
        ("not a", ["a"]),
        ("min(a, b)", ["max(a, b)"]),
        ("5", ["6", "4"]),
        ("2.0", ["3.0", "1.0"]),
        ("'text'", ["''"]),
        ("f'{a} %'", ["('')"]),
        ("True", ["False"]),
        ("b if a else c", ["b if True else c", "b if False else c"]),
        ("[a for a in b if c]", ["[a for a in b if True]", "[a for a in b if False]"]),
        ("int | None", []),  # a type
    ],
)
def test_an_expression_is_changed_into_these(expression: str, others: list[str]) -> None:
    assert changed(f"x = {expression}") == [f"x = {other}" for other in others]


@pytest.mark.parametrize(
    ("statement", "others"),
    [
        ("return a", ["return None"]),
        ("return None", []),
        ("call(a)", ["pass"]),
        ("self.a = b", ["pass"]),
        ("a += b", ["pass"]),
        ("raise a", ["pass"]),
        ("a = b", []),  # a name would be missing
        ("'''A docstring.'''", []),
        ("a: 'text' = b", []),
    ],
)
def test_a_statement_is_changed_into_these(statement: str, others: list[str]) -> None:
    assert changed(f"def f():\n    {statement}") == [f"def f():\n    {other}" for other in others]


def test_a_rule_is_tried_as_one_that_always_holds_and_one_that_never_does() -> None:
    assert changed("if a:\n    b = c") == ["if True:\n    b = c", "if False:\n    b = c"]
    assert changed("while a:\n    b = c") == ["while False:\n    b = c"]


def test_a_change_knows_the_outermost_function_as_its_code_object_does() -> None:
    source = (
        b"class A:\n    @property\n    def b(self):\n        def c():\n            return d\n        c()\n\n\ne = 5\n"
    )

    assert [mutant.function for mutant in mutants(source)] == [("A.b", 2), ("A.b", 2), None, None]


def test_decorators_and_the_names_in_an_enumeration_are_left_alone() -> None:
    assert changed("@dataclass(frozen=True)\nclass A(StrEnum):\n    B = 'b'") == []


def test_what_is_called_when_a_function_is_defined_does_not_happen_in_it() -> None:
    assert [mutant.function for mutant in mutants(b"def f(a=5, *, b=True):\n    pass\n")] == [None] * 3


def test_the_lines_below_a_change_stay_where_they_are() -> None:
    source = b"def f():\n    call(\n        a,\n    )\n\n\ndef g():\n    return (\n        a\n        < b\n    )\n"

    assert {mutant.of(source).count(b"\n") for mutant in mutants(source)} == {source.count(b"\n")}


def test_letters_of_several_bytes_do_not_move_a_change() -> None:
    assert changed("x = ('水', 1)")[-1] == "x = ('水', 0)"


def test_a_difference_is_told_by_its_lines() -> None:
    source = b"a = b\nc = d < e\n"

    assert diff(source, mutants(source)[0]) == "-c = d < e\n+c = (d <= e)"
