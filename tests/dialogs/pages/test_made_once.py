"""HTML of values is made once for the same values and language."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.template.backends.django import Template
from django.utils import translation

from dialogs.pages import rendering as module
from dialogs.pages.rendering import made_once

PART = "dialogs/_title.html"


class Titled:
    def __init__(self, title: str) -> None:
        self.title = title


FIRST, SECOND = Titled("One"), Titled("<Two>")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    names: list[str] = []
    render = Template.render

    def noted(self: Template, *given: object) -> object:
        names.append(str(self.template.name))
        return render(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(Template, "render", noted)
    module._made.cache_clear()
    yield names
    module._made.cache_clear()


def test_the_same_values_are_rendered_once(made: list[str]) -> None:
    found = {made_once(PART, dialog=FIRST) for _time in range(3)}

    assert made == [PART]
    assert len(found) == 1


def test_other_values_are_rendered_anew(made: list[str]) -> None:
    assert "One" in made_once(PART, dialog=FIRST)
    assert "&lt;Two&gt;" in made_once(PART, dialog=SECOND)
    assert made == [PART, PART]


def test_each_language_has_its_own(made: list[str]) -> None:
    untitled = Titled("")
    with translation.override("en"):
        english = made_once(PART, dialog=untitled)
    with translation.override("zh-hans"):
        chinese = made_once(PART, dialog=untitled)

    assert english != chinese
    assert made == [PART, PART]
