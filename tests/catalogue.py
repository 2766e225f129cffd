"""Reads the translations and the texts of the source, and says what is wrong with them. No gettext program is needed.

Only `test_translations.py` uses it; the rules themselves stand there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog, Message
from babel.messages.extract import DEFAULT_KEYWORDS, extract
from babel.messages.mofile import read_mo, write_mo
from babel.messages.pofile import read_po
from django.utils.translation.template import templatize

from tests.imports import PACKAGES, ROOT

FOLDER = ROOT / "locale" / "zh_Hans" / "LC_MESSAGES"
LOCALE = "zh_Hans"
# A text's key: its English (singular and plural, where it has both) and its context.
Key = tuple[tuple[str, ...], str | None]
# What gettext's own names are called when they wait until they are shown.
KEYWORDS = DEFAULT_KEYWORDS | {
    f"{name}{ending}": DEFAULT_KEYWORDS[name]
    for name in ("gettext", "ngettext", "pgettext", "npgettext")
    for ending in ("_lazy", "_noop")
}
# `%(name)s`, `%(seconds).1f`, `%s`, `%%`, and the tags that stand in a text. Not the `% o` of “90 % of”.
PART = re.compile(r"%(?:\(\w+\))?[\d.]*[a-zA-Z%]|</?\w+>")


def read_source(po: bytes) -> Catalog:
    return read_po(BytesIO(po), locale=LOCALE)


def compile_source(po: bytes) -> Catalog:
    """What a program finds once the file is compiled."""
    compiled = BytesIO()
    write_mo(compiled, read_source(po))
    return read_compiled(compiled.getvalue())


def read_compiled(mo: bytes) -> Catalog:
    return read_mo(BytesIO(mo))


def translations(catalogue: Catalog) -> dict[Key, tuple[str, ...]]:
    return {key(message): _forms(message.string) for message in catalogue if message.id}


def key(message: Message) -> Key:
    return _forms(message.id), message.context


def _forms(text: str | list[str] | tuple[str, ...] | None) -> tuple[str, ...]:
    return tuple(text) if isinstance(text, list | tuple) else (text or "",)


def unfinished(catalogue: Catalog) -> list[Key]:
    """Entries without a translation in every form, and those that somebody must still look at."""
    return [key(one) for one in catalogue if one.id and (one.fuzzy or not all(_forms(one.string)))]


def with_other_parts(catalogue: Catalog) -> list[Key]:
    """Entries whose translation lost, gained or misspelt a placeholder or a tag."""
    return [key(one) for one in catalogue if one.id and not _same_parts(one)]


def _same_parts(message: Message) -> bool:
    # Chinese has one form, which speaks of any number, as the English plural does.
    meant = sorted(PART.findall(_forms(message.id)[-1]))
    return all(sorted(PART.findall(form)) == meant for form in _forms(message.string))


def source_texts() -> set[Key]:
    """Every text that the source asks to have translated."""
    code = (path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    templates = (path for ending in ("html", "txt") for path in (ROOT / "templates").rglob(f"*.{ending}"))
    return {text for path in (*code, *templates) for text in texts_of(path)}


def texts_of(path: Path) -> Iterator[Key]:
    code = path.read_text() if path.suffix == ".py" else _as_code(path.read_text())
    for _line, texts, _comments, context in extract("python", BytesIO(code.encode()), KEYWORDS):
        yield _forms(texts), context


def _as_code(template: str) -> str:
    """A template's texts as calls. Indentation would mean something to Python, so it goes."""
    return "\n".join(line.strip() for line in templatize(template).splitlines())
