"""Mutants of a module: one small change of its source text each, as a person might make by mistake.

Left alone are annotations, docstrings, imports and decorators, and the strings of enumerations, which are only names.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
Key = tuple[str, int]

OTHER_OPERATOR: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
OTHER_NAME = {"min": "max", "max": "min", "any": "all", "all": "any"}


class Mutant(NamedTuple):
    """The bytes from `start` to `end` of a source are `text`. `function`: name and first line of the outermost function
    that it happens in, as its code object has them; None for what is run when the module is imported."""

    function: Key | None
    start: int
    end: int
    text: str

    def of(self, source: bytes) -> bytes:
        return source[: self.start] + self.text.encode() + source[self.end :]


def mutants(source: bytes) -> list[Mutant]:
    """Every change of this module, in order, each once."""
    finder = _Finder(source)
    finder.visit(ast.parse(source))
    return sorted(dict.fromkeys(finder.found), key=lambda mutant: mutant.start)


def _is_name(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def first_line(node: FunctionNode) -> int:
    """Where the code object of a function says that it begins: at its first decorator."""
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


class _Finder(ast.NodeVisitor):
    def __init__(self, source: bytes) -> None:
        self.found: list[Mutant] = []
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._names: list[str] = []
        self._function: Key | None = None

    def visit(self, node: ast.AST) -> None:
        # When a module is imported `|` joins types.
        is_type = isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr) and not self._function
        changes = None if is_type else CHANGES.get(type(node))
        for part, text in changes(node) if changes else ():
            self._note(part, text)
        super().visit(node)

    def _note(self, node: Any, text: str) -> None:
        """The change keeps the number of lines, so that later functions keep their line numbers."""
        lines = "\n" * (node.end_lineno - node.lineno)
        is_plain = text == "pass" or (not lines and (text.isidentifier() or isinstance(node, ast.Constant)))
        text = f"{text}{lines}" if is_plain else f"({text}{lines})"
        start, end = self._starts[node.lineno - 1] + node.col_offset, self._starts[node.end_lineno - 1]
        self.found.append(Mutant(self._function, start, end + node.end_col_offset, text))

    def _visit_function(self, node: FunctionNode) -> None:
        for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(default)
        before = self._function
        self._names.append(node.name)
        self._function = before or (".".join(self._names), first_line(node))
        for statement in node.body:
            self.visit(statement)
        self._names.pop()
        self._function = before

    visit_FunctionDef = visit_AsyncFunctionDef = _visit_function  # noqa: N815  so called by ast

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._names.append(node.name)
        for statement in node.body:
            if not _is_name(statement):
                self.visit(statement)
        self._names.pop()

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value:
            self.visit(node.value)

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.generic_visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Skipped: Python 3.11 has no positions for the parts of an f-string."""


Changes = Iterator[tuple[ast.AST, str]]


def _of_value(node: ast.Constant) -> Changes:
    yield from ((node, text) for text in _other_values(node.value))


def _of_comparison(node: ast.Compare) -> Changes:
    for at, operator in enumerate(node.ops):
        yield node, _with(node, ops=[*node.ops[:at], OTHER_OPERATOR[type(operator)](), *node.ops[at + 1 :]])


def _of_conditions(node: ast.BoolOp) -> Changes:
    yield node, _with(node, op=OTHER_OPERATOR[type(node.op)]())
    for at in range(len(node.values)):
        left = [*node.values[:at], *node.values[at + 1 :]]
        yield node, _with(node, values=left) if len(left) > 1 else ast.unparse(left[0])


def _of_operator(node: ast.BinOp) -> Changes:
    if type(node.op) in OTHER_OPERATOR:
        yield node, _with(node, op=OTHER_OPERATOR[type(node.op)]())


def _of_sign(node: ast.UnaryOp) -> Changes:
    if isinstance(node.op, ast.Not | ast.USub):
        yield node, ast.unparse(node.operand)


def _of_call(node: ast.Call) -> Changes:
    if isinstance(node.func, ast.Name) and node.func.id in OTHER_NAME:
        yield node.func, OTHER_NAME[node.func.id]


def _of_return(node: ast.Return) -> Changes:
    if node.value and not (isinstance(node.value, ast.Constant) and node.value.value is None):
        yield node.value, "None"


def _of_rule(node: ast.If | ast.IfExp) -> Changes:
    yield from ((node.test, text) for text in ("True", "False"))


def _of_filter(node: ast.comprehension) -> Changes:
    yield from ((test, text) for test in node.ifs for text in ("True", "False"))


def _of_statement(node: ast.stmt) -> Changes:
    is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    # Without any other assignment a name would be missing.
    is_name = isinstance(node, ast.Assign) and not isinstance(node.targets[0], ast.Attribute | ast.Subscript)
    if not is_docstring and not is_name:
        yield node, "pass"


CHANGES: dict[type[ast.AST], Callable[[Any], Changes]] = {
    ast.Constant: _of_value,
    ast.JoinedStr: lambda node: iter([(node, "''")]),
    ast.Compare: _of_comparison,
    ast.BoolOp: _of_conditions,
    ast.BinOp: _of_operator,
    ast.UnaryOp: _of_sign,
    ast.Call: _of_call,
    ast.Return: _of_return,
    ast.If: _of_rule,
    ast.IfExp: _of_rule,
    ast.While: lambda node: iter([(node.test, "False")]),
    ast.comprehension: _of_filter,
    **dict.fromkeys(
        (ast.Expr, ast.Assign, ast.AugAssign, ast.Raise, ast.Break, ast.Continue, ast.Delete), _of_statement
    ),
}


def _other_values(value: object) -> list[str]:
    match value:
        case bool():
            return [str(not value)]
        case int():
            return [str(value + 1), str(value - 1)]
        case float():
            return [repr(value * 1.5), repr(value / 2)] if value else ["1.0"]
        case str():
            return ["''" if value else "'mutant'"]
    return []


def _with(node: ast.AST, **fields: object) -> str:
    other = copy.copy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return ast.unparse(other)
