"""HTML of values is made once for the same values and language."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from django.template import Context
from django.template.backends.django import Template
from django.template.base import Template as BaseTemplate
from django.template.loader import render_to_string
from django.test import Client
from django.utils import timezone, translation

from dialogs.models import Dialog
from dialogs.pages import rendering as module
from dialogs.pages.reads.rows import MessageRow, Visibility
from dialogs.pages.reads.transcript import transcript
from dialogs.pages.rendering import made_once
from dialogs.pages.writes import create_dialog
from dialogs.templatetags.dialog_tags import row_of
from dialogs.transcript.writes.marks import set_pin
from dialogs.turns.writes.messages import post_message
from tests.builders import an_answer

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


# --- Rows of messages about which nothing is special: one rendering of their template serves all of them ---
SAID = (
    "Is <b> & 'q' bold?\n\nA second\ttext-of-the-message",
    "**Yes**, 999999999999999999.\n\n```py\nprint(1)\n```",
    "And?",
)


@pytest.fixture
def said(dialog: Dialog) -> list[MessageRow]:
    for text in SAID:
        post_message(dialog=dialog, content=text)
        an_answer(dialog, text, prompt_tokens=1_000, completion_tokens=len(text), finished_at=timezone.now())
    return plain_rows(dialog)


def plain_rows(dialog: Dialog) -> list[MessageRow]:
    rows = transcript(Dialog.objects.get(pk=dialog.pk)).rows
    return [row for row in rows if isinstance(row, MessageRow) and row.is_plain]


def rendered(row: MessageRow, dialog: Dialog) -> str:
    return render_to_string("dialogs/rows/message.html", {"row": row, "dialog": dialog})


@pytest.mark.django_db
@pytest.mark.parametrize("language", ["en", "zh-hans"])
@pytest.mark.parametrize("seen", [None, *Visibility])
def test_a_plain_row_reads_as_its_template_writes_it(
    said: list[MessageRow], dialog: Dialog, language: str, seen: Visibility | None
) -> None:
    rows = [replace(row, visibility=seen, is_current=is_current) for row in said for is_current in (True, False)]
    with translation.override(language):
        assert [row_of(row, dialog) for row in rows] == [rendered(row, dialog) for row in rows]
    assert len(said) == 2 * len(SAID) - 2


@pytest.mark.django_db
def test_an_agent_of_another_name_speaks_in_its_rows(said: list[MessageRow], dialog: Dialog) -> None:
    before = row_of(said[1], dialog)
    dialog.agent.name = "Renamed"

    assert row_of(said[1], dialog) == rendered(said[1], dialog) != before


@pytest.mark.django_db
def test_a_row_names_nothing_of_the_dialog_whose_row_was_rendered_first(said: list[MessageRow], dialog: Dialog) -> None:
    another = create_dialog(owner=dialog.owner, agent=dialog.agent)
    another.agent.name = dialog.agent.name = "Speaks for the first time"
    row_of(said[1], another)

    assert row_of(said[1], dialog) == rendered(said[1], dialog)


@pytest.mark.django_db
def test_a_marked_row_is_none_of_them(said: list[MessageRow], dialog: Dialog) -> None:
    set_pin(dialog=dialog, message_id=said[0].message.pk, pinned=True)

    assert [row.message.pk for row in plain_rows(dialog)] == [row.message.pk for row in said[1:]]


@pytest.mark.django_db
def test_a_page_renders_the_template_for_what_is_special_about_its_end(
    said: list[MessageRow], dialog: Dialog, as_alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str | None] = []
    render = BaseTemplate.render

    def noted(self: BaseTemplate, context: Context) -> object:
        names.append(self.name)
        return render(self, context)

    monkeypatch.setattr(BaseTemplate, "render", noted)
    as_alice.get(f"/dialogs/{dialog.pk}/")
    names.clear()
    as_alice.get(f"/dialogs/{dialog.pk}/")

    assert names.count("dialogs/rows/message.html") == 2
