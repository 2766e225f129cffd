"""Which names that modules define at their top have a user, told by who imports what from where: a word alone tells
nothing, as another module may have the same.

Uses are `from module import name`, `module.name`, a read in the module itself outside of the name's own definition and
not hidden by a local name, and a text that names it in full. A package that imports a name and does not read it hands
it on: whoever takes it from there uses it. Runs nothing that it reads.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from tests.imports import Module

# The module, and the name in it.
Name = tuple[str, str]
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:[.:][A-Za-z_]\w*)+")


def used_names(modules: Iterable[Module]) -> frozenset[Name]:
    return _Product({module.name: module for module in modules}).used


def definitions(tree: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    """Each name that is defined at the top, with its definition."""
    for node in tree.body:
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            yield node.name, node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from ((one.id, node) for one in targets if isinstance(one, ast.Name))


class _Product:
    def __init__(self, modules: Mapping[str, Module]) -> None:
        self.modules = modules
        self.handed_on: dict[Name, Name] = {}

    @cached_property
    def used(self) -> frozenset[Name]:
        found = {name for module in self.modules.values() for name in self._used_by(module)}
        while more := {inner for outer, inner in self.handed_on.items() if outer in found} - found:
            found |= more
        return frozenset(found)

    def _used_by(self, module: Module) -> Iterator[Name]:
        reads = reads_in(module.tree)
        local = _imported(module)
        yield from ((module.name, name) for name in _read_at_home(module.tree, reads))
        yield from self._taken(module, local, {_root(read) for read in reads})
        for read in reads:
            root, _, rest = read.partition(".")
            yield from self._place(f"{local[root]}.{rest}" if root in local and rest else "")
        yield from self._named_in_texts(module)

    def _taken(self, module: Module, local: Mapping[str, str], read: set[str]) -> Iterator[Name]:
        """What it imports by name. Notes what a package hands on."""
        for name, full in local.items():
            for place in self._place(full):
                if module.is_package and name not in read:
                    self.handed_on[module.name, name] = place
                else:
                    yield place

    def _named_in_texts(self, module: Module) -> Iterator[Name]:
        """A setting names it in full; who imports a module by its name reads what it needs of it."""
        attributes = {node.attr for node in ast.walk(module.tree) if isinstance(node, ast.Attribute)}
        for text in (node.value for node in ast.walk(module.tree) if isinstance(node, ast.Constant)):
            for dotted in _DOTTED.findall(text) if isinstance(text, str) else ():
                full = dotted.replace(":", ".")
                yield from self._place(full)
                yield from ((full, name) for name in attributes if full in self.modules)

    def _place(self, full: str) -> Iterator[Name]:
        """The module that a dotted name begins with, and what of it is meant; nothing where it is a module itself."""
        parts = full.split(".")
        if full not in self.modules:
            known = (at for at in range(len(parts) - 1, 0, -1) if ".".join(parts[:at]) in self.modules)
            yield from ((".".join(parts[:at]), parts[at]) for at in [*known][:1])


def _imported(module: Module) -> dict[str, str]:
    """What each name stands for that an import anywhere in the module brings in."""
    found: dict[str, str] = {}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            found |= {one.asname or _root(one.name): one.name if one.asname else _root(one.name) for one in node.names}
        elif isinstance(node, ast.ImportFrom):
            source = module.source_of(node)
            found |= {one.asname or one.name: f"{source}.{one.name}" for one in node.names}
    return found


def _read_at_home(tree: ast.Module, reads: list[str]) -> Iterator[str]:
    """What is defined at the top and read elsewhere in the module than in its own definition."""
    everywhere = Counter(map(_root, reads))
    for name, node in definitions(tree):
        is_own = isinstance(node, (*FUNCTIONS, ast.ClassDef))
        own = sum(_root(read) == name for read in reads_in(node)) if is_own else 0
        if everywhere[name] > own:
            yield name


def _root(dotted: str) -> str:
    return dotted.partition(".")[0]


def reads_in(tree: ast.AST) -> list[str]:
    """Every name that is read, as far as it is dotted, but for those that a function has as its own."""
    reader = _Reader()
    reader.visit(tree)
    return reader.found


class _Reader(ast.NodeVisitor):
    def __init__(self) -> None:
        self.found: list[str] = []
        self.local: list[set[str]] = []

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self._read(node.id)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        behind: list[str] = []
        at: ast.expr = node
        while isinstance(at, ast.Attribute):
            behind.append(at.attr)
            at = at.value
        if isinstance(at, ast.Name):
            self._read(".".join((at.id, *reversed(behind))))
        else:
            self.visit(at)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._visit_function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._visit_function(node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._visit_function(node)

    def _visit_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        """Its defaults, decorators and annotations are read outside of it."""
        body = node.body if isinstance(node.body, list) else [node.body]
        inner = {id(one) for one in body}
        for child in ast.iter_child_nodes(node):
            if id(child) not in inner:
                self.visit(child)
        self.local.append({*_arguments(node.args), *_bound(body)})
        for child in body:
            self.visit(child)
        self.local.pop()

    def _read(self, dotted: str) -> None:
        if not any(_root(dotted) in names for names in self.local):
            self.found.append(dotted)


def _arguments(arguments: ast.arguments) -> Iterator[str]:
    return (node.arg for node in ast.walk(arguments) if isinstance(node, ast.arg))


def _bound(body: Iterable[ast.AST]) -> Iterator[str]:
    """The names that these statements give a value, without what functions in them do."""
    for node in body:
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            yield node.name
        elif not isinstance(node, ast.Lambda):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id
            yield from _bound(ast.iter_child_nodes(node))
