"""Simplified Chinese is complete, compiled, and uses the agreed words. The last tests show that they can fail."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.admin import ModelAdmin
from django.contrib.admin.utils import flatten_fieldsets, label_for_field
from django.contrib.auth.models import User
from django.test import Client, RequestFactory
from django.utils.translation import override

from dialogs.common.text import sentences
from dialogs.models import Dialog, Generation
from dialogs.turns.writes.messages import post_message
from health.models import HealthReading
from health.monitor.levels import Configured, Usage
from health.services import record_reading
from tests.builders import a_generation, an_answer
from tests.catalogue import (
    FOLDER,
    compile_source,
    read_compiled,
    read_source,
    source_texts,
    texts_of,
    translations,
    unfinished,
    with_other_parts,
)
from tests.dialogs.pages.views.pages import Page

LEVELS = {"healthy": "充裕", "caution": "吃紧", "critical": "告急", "unknown": "未知"}
# Words for levels and other things that older papers use and the interface does not; 您 where it says 你 elsewhere.
OTHER_WORDS = ("警告", "严重", "会话", "供应商", "代理", "词元", "您")
# Attributes that a person reads or hears.
SPOKEN = ("alt", "aria-label", "aria-valuetext", "placeholder", "title")
# Names stay as they are: products, formats, keys of the keyboard, units, a language in its own words, a command.
NAMES = {"Dominds", "LLM", "JSON", "Markdown", "Enter", "Shift", "Esc", "UTC", "token", "MB", "Cookie", "English"}
NAMES |= {"API", "URL", "OpenAI", "Open", "WebUI"}
COMMAND = {"manage", "py", "signin_link", "doctor"}
CAST = {"alice", "Helper", "scripted", "tiny"}
ADDRESS = {"http", "testserver"}
# The end of a sentence or a label in a template, a blank of the template's own, and what goes on in the same line.
PARTED = re.compile(
    r"""[.:?!;](?:["'] %\}|\{% endblocktranslate %\})(?:\{% (?:if [^%]*|endif) %\}|</(?:b|span|small|code)>)*"""
    r"""(?!\s+\{% el)\s+(?:\{\{|\{%|\w|<(?!span class=)(?:a|b|q|code|span|small|strong|time)\b)"""
)

SOURCE = (FOLDER / "django.po").read_bytes()

BROKEN = """
msgid "caution"
msgstr "警告"

msgid "nobody wrote this"
msgstr ""

#, fuzzy
msgid "somebody guessed this"
msgstr "猜的"

msgid "%(count)s of <b>%(all)s</b>"
msgstr "%(count)s / <b>%(al)s</b>"
""".encode()


def english_words(page: Page) -> set[str]:
    """Words in Latin letters that a person meets on the page and that are no names."""
    words = re.findall(r"[A-Za-z_]{2,}", f"{page.text} {spoken(page)}")
    return {word for word in words if word not in NAMES | COMMAND | CAST | ADDRESS}


def spoken(page: Page) -> str:
    return " ".join(value for _tag, attrs in page.tags for name, value in attrs.items() if name in SPOKEN and value)


def fill(dialog: Dialog) -> None:
    """An answer that was measured, then tries that came to nothing, one that runs, and a message that waits."""
    post_message(dialog=dialog, content="你好")
    answer = an_answer(dialog, content="你好！", prompt_tokens=620, completion_tokens=3, finish_reason="length")
    usage = Usage(prompt_tokens=620, completion_tokens=3, total_tokens=623)
    limits = Configured(context_length=1000)
    record_reading(generation_id=answer.generation.pk, usage=usage, configured=limits, window_source="server")
    post_message(dialog=dialog, content="再见")
    dialog.refresh_from_db()
    for status in ("interrupted", "failed", "running"):
        a_generation(dialog, status=status, error_code="rate_limited", partial_text="一半")
    post_message(dialog=dialog, content="等等")


def labels_of(page: ModelAdmin) -> Iterator[str]:
    """What its table is called, and every column and field of its pages that does not stand for the row itself."""
    yield from (str(page.model._meta.verbose_name), str(page.model._meta.verbose_name_plural))
    request = RequestFactory().get("/")
    request.user = User(is_superuser=True)
    shown = [*page.list_display, *flatten_fieldsets(page.get_fieldsets(request))]
    yield from (str(label_for_field(name, page.model, page)) for name in shown if name != "__str__")


def chinese_browser() -> Client:
    return Client(headers={"accept-language": "zh-hans"})


def test_every_text_is_translated() -> None:
    assert unfinished(read_source(SOURCE)) == []


def test_the_catalogue_holds_what_the_source_says_and_nothing_else() -> None:
    """`make messages` brings it up to date."""
    assert translations(read_source(SOURCE)).keys() == source_texts()


def test_the_compiled_catalogue_is_the_one_that_people_read() -> None:
    compiled = read_compiled((FOLDER / "django.mo").read_bytes())

    assert translations(compiled) == translations(compile_source(SOURCE))


def test_every_translation_keeps_its_placeholders_and_tags() -> None:
    assert with_other_parts(read_source(SOURCE)) == []


@pytest.mark.parametrize("level", LEVELS)
def test_a_level_has_one_word(level: str) -> None:
    words = translations(read_source(SOURCE))

    assert words[((level,), None)] == (LEVELS[level],)
    assert words[((f"Context: {level}",), None)] == (f"上下文：{LEVELS[level]}",)


@pytest.mark.parametrize("level", HealthReading.Level)
def test_a_stored_level_is_shown_by_its_word(level: HealthReading.Level) -> None:
    with override("zh-hans"):
        assert str(level.label) == LEVELS[level.value]


@pytest.mark.parametrize("word", OTHER_WORDS)
def test_one_thing_has_one_name(word: str) -> None:
    forms = [form for forms in translations(read_source(SOURCE)).values() for form in forms]

    assert [form for form in forms if word in form] == []


def test_the_login_page_is_all_chinese(db: Any) -> None:
    page = Page(chinese_browser().get("/login/").content.decode())

    assert "登录" in page.text
    assert english_words(page) == set()


@pytest.mark.parametrize(
    "path",
    ["", "?shelf=archived", "?shelf=trash", "?q=一", "dialogs/new/", "dialogs/import/", "account/password/", "nowhere/",
     "dialogs/{0}/", "dialogs/{0}/archive-of-context/",
     "dialogs/{0}/trash/", "dialogs/{0}/erase/", "?rename={0}", "preferences/compaction/",
     "settings/keys/", "settings/keys/new/"],
)  # fmt: skip
def test_a_page_is_all_chinese(alice: User, dialog: Dialog, path: str) -> None:
    browser = chinese_browser()
    browser.force_login(alice)
    post_message(dialog=dialog, content="你好")
    an_answer(dialog, content="你好！", prompt_tokens=12, completion_tokens=3)

    page = Page(browser.get("/" + path.format(dialog.pk)).content.decode())

    assert dict(page.tags)["html"]["lang"] == "zh-hans"
    assert english_words(page) == set()


def test_a_dialog_with_every_kind_of_row_is_all_chinese(alice: User, dialog: Dialog) -> None:
    browser = chinese_browser()
    browser.force_login(alice)
    fill(dialog)

    page = Page(browser.get(f"/dialogs/{dialog.pk}/").content.decode())

    shown = ("已截断", "已中断", "失败", "正在等待工作进程", "排队中", "以表格显示")
    assert [words for words in shown if words not in page.text] == []
    assert english_words(page) == set()


@pytest.mark.parametrize(("app", "name"), [("dialogs", "对话"), ("health", "健康")])
def test_the_admin_names_each_app_in_chinese(app: str, name: str) -> None:
    with override("zh-hans"):
        assert str(apps.get_app_config(app).verbose_name) == name


def test_the_admins_records_are_labelled_in_chinese() -> None:
    records = {Generation, *apps.get_app_config("health").get_models()}
    ours = [page for model, page in admin.site._registry.items() if model in records]

    with override("zh-hans"):
        said = {(page.model.__name__, words) for page in ours for words in labels_of(page)}

    english = {(name, words) for name, words in said if not re.search(r"[\u4e00-\u9fff]", words)}
    assert {(name, words) for name, words in english if words not in NAMES | {"ID"}} == set()


def test_a_template_leaves_the_blank_after_a_sentence_to_the_language() -> None:
    """`{% blank %}` stands there: after 。 and ： Chinese has none."""
    parted = {
        path.name: found
        for path in sorted(FOLDER.parents[2].glob("templates/**/*.html"))
        if (found := PARTED.findall(path.read_text()))
    }

    assert parted == {}


def test_sentences_in_a_row_have_a_blank_between_them_where_the_language_has_one() -> None:
    with override("en"):
        assert sentences(["It is full.", "It was compacted."]) == "It is full. It was compacted."
    with override("zh-hans"):
        assert sentences(["已满。", "已压缩。"]) == "已满。已压缩。"


def test_a_broken_catalogue_is_found_out() -> None:
    broken = read_source(BROKEN)

    assert [one for one, _context in unfinished(broken)] == [("nobody wrote this",), ("somebody guessed this",)]
    assert (("%(count)s of <b>%(all)s</b>",), None) in with_other_parts(broken)
    assert translations(broken)[(("caution",), None)] != (LEVELS["caution"],)


def test_a_catalogue_that_was_not_compiled_is_found_out() -> None:
    edited = SOURCE.replace("充裕".encode(), "健康".encode())

    assert translations(compile_source(edited)) != translations(compile_source(SOURCE))


def test_texts_are_found_in_templates_and_in_code(tmp_path: Path) -> None:
    template, code = tmp_path / "page.html", tmp_path / "code.py"
    template.write_text('  <p>{% translate "One" %}\n{% include "x" with label=_("Two") %}</p>')
    code.write_text('a = pgettext_lazy("theme", "Light")\nb = ngettext("%(n)s day", "%(n)s days", n)\n')

    assert set(texts_of(template)) == {(("One",), None), (("Two",), None)}
    assert set(texts_of(code)) == {(("Light",), "theme"), (("%(n)s day", "%(n)s days"), None)}


def test_an_english_word_on_a_page_is_found_out() -> None:
    page = Page('<p title="Close">Dominds 关闭 <b>Save</b></p>')

    assert english_words(page) == {"Close", "Save"}
