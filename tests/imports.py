"""Reads a module's source as a tree and says what it reaches for. Runs nothing that it reads.

The rules themselves stand in `test_architecture.py` and `test_callers.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("dominds", "dialogs", "health")


@dataclass(frozen=True)
class Module:
    """One source file: `name` as Python imports it, `text` as written."""

    name: str
    text: str = field(repr=False)
    is_package: bool = False

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @property
    def docstring(self) -> str | None:
        return ast.get_docstring(self.tree)

    @cached_property
    def imports(self) -> frozenset[str]:
        """Dotted names, wherever in the file they stand; `from a import b` is both `a` and `a.b`."""
        return frozenset(found for node in ast.walk(self.tree) for found in self._imported(node))

    def _imported(self, node: ast.AST) -> Iterator[str]:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            source = self.source_of(node)
            yield source
            yield from (f"{source}.{alias.name}" for alias in node.names)

    def source_of(self, node: ast.ImportFrom) -> str:
        """The module or package that it takes names from."""
        return ".".join(part for part in (self._base(node.level), node.module) if part)

    def _base(self, level: int) -> str:
        """The package that a relative import with this many dots starts from."""
        if level == 0:
            return ""
        parts = self.name.split(".")
        return ".".join(parts[: len(parts) - level + self.is_package])

    @cached_property
    def called_methods(self) -> frozenset[str]:
        """`save` for `anything.save(...)`."""
        calls = (node.func for node in ast.walk(self.tree) if isinstance(node, ast.Call))
        return frozenset(function.attr for function in calls if isinstance(function, ast.Attribute))

    @cached_property
    def names(self) -> frozenset[str]:
        """Every attribute and name that the code mentions; comments and texts do not count."""
        attributes = {node.attr for node in ast.walk(self.tree) if isinstance(node, ast.Attribute)}
        return frozenset(attributes | {node.id for node in ast.walk(self.tree) if isinstance(node, ast.Name)})


def within(name: str, prefixes: tuple[str, ...]) -> bool:
    """Whether a dotted name is one of these modules or lies inside one."""
    return any(name == prefix or name.startswith(f"{prefix}.") for prefix in prefixes)


@cache
def our_modules() -> list[Module]:
    """Every source file of ours but migrations, which Django writes."""
    paths = (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))
    return [read_module(path) for path in paths if "migrations" not in path.parts]


def read_module(path: Path) -> Module:
    parts = path.relative_to(ROOT).with_suffix("").parts
    is_package = parts[-1] == "__init__"
    return Module(".".join(parts[:-1] if is_package else parts), path.read_text(), is_package)
