"""The shell around every page: its policy, its menus, and the pages for what went wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.staticfiles import finders
from django.db import OperationalError, connection
from django.test import Client

from dialogs.models import CompactionDisplay, Dialog, Message
from dialogs.pages.views.shell import THEME_COOKIE
from tests.dialogs.full_database import LARGE, full_database
from tests.dialogs.pages.views.pages import HTMX, Page, page

PAGES = ("/", "/?shelf=archived", "/?shelf=trash", "/?q=x", "/dialogs/new/", "/dialogs/import/", "/account/password/")


@pytest.mark.parametrize("url", PAGES)
def test_no_page_needs_more_than_the_strict_policy(as_alice: Client, dialog: Dialog, url: str) -> None:
    response = as_alice.get(url)
    shown = Page(response.content.decode())

    assert shown.offences == []
    assert "script-src" not in response["Content-Security-Policy"]
    assert "default-src 'self'" in response["Content-Security-Policy"]
    assert "unsafe" not in response["Content-Security-Policy"]


@pytest.mark.parametrize("path", ["?rename={0}", "dialogs/{0}/trash/", "dialogs/{0}/erase/"])
@pytest.mark.parametrize("headers", [{}, HTMX], ids=["plain", "htmx"])
def test_no_fragment_needs_more_either(as_alice: Client, dialog: Dialog, path: str, headers: dict[str, str]) -> None:
    response = as_alice.get("/" + path.format(dialog.pk), headers=headers)

    assert response.status_code == 200
    assert Page(response.content.decode()).offences == []


def test_a_title_is_text_wherever_it_stands(as_alice: Client, dialog: Dialog) -> None:
    Dialog.objects.update(title='<script>alert(1)</script>" onclick="x')

    for url in ("/", f"/?rename={dialog.pk}", f"/dialogs/{dialog.pk}/trash/"):
        assert page(as_alice, url).offences == []


def test_the_login_page_is_in_the_shell(client: Client, db: Any) -> None:
    shown = page(client, "/login/")

    assert shown.offences == []
    assert "Skip to the content" in shown.text
    assert "Sign out" not in shown.text


def test_every_file_that_a_page_names_exists_and_every_icon_that_it_uses_is_drawn(
    as_alice: Client, dialog: Dialog
) -> None:
    shown = page(as_alice, "/")
    named = {str(attrs.get("href") or attrs.get("src") or "") for _tag, attrs in shown.tags}
    files = {name.removeprefix("/static/").partition("#")[0] for name in named if name.startswith("/static/")}

    assert "css/base.css" in files
    assert [name for name in files if finders.find(name) is None] == []
    drawn = Path(str(finders.find("icons.svg"))).read_text()
    used = {
        str(attrs["href"]).partition("#")[2] for url in PAGES for tag, attrs in page(as_alice, url).tags if tag == "use"
    }
    assert [name for name in used if f'id="{name}"' not in drawn] == []


def test_only_staff_is_shown_the_admin(as_alice: Client, as_sam: Client) -> None:
    assert "/admin/" in page(as_sam, "/").links()
    assert "/admin/" not in page(as_alice, "/").links()


def test_signing_out_is_a_post(as_alice: Client) -> None:
    forms = [attrs for tag, attrs in page(as_alice, "/").tags if tag == "form"]

    assert {"method": "post", "action": "/logout/"} in forms


def test_a_missing_page_says_what_to_do(as_alice: Client) -> None:
    response = as_alice.get("/nowhere/")

    assert response.status_code == 404
    assert "Go to your dialogs" in response.content.decode()
    assert Page(response.content.decode()).offences == []


WORDS = {
    "en": ("Something went wrong here", "Nothing is here", "This page was too old"),
    "zh-hans": ("这里出了问题", "这里什么也没有", "页面已过期"),
}


@pytest.mark.parametrize("language", WORDS)
def test_a_database_that_is_away_gets_the_error_pages_in_the_persons_language_and_theme(
    as_alice: Client, language: str
) -> None:
    def away(*args: Any) -> Any:
        raise OperationalError("the database is away")

    as_alice.raise_request_exception = False
    as_alice.cookies["django_language"], as_alice.cookies[THEME_COOKIE] = language, "dark"
    with connection.execute_wrapper(away):
        failed, missing = as_alice.get("/"), as_alice.get("/nowhere/")
        as_alice.handler.enforce_csrf_checks = True
        refused = as_alice.post("/login/", {"username": "alice"})

    answers = (failed, missing, refused)
    assert [answer.status_code for answer in answers] == [500, 404, 403]
    for answer, words in zip(answers, WORDS[language], strict=True):
        shown = answer.content.decode()
        assert words in shown
        assert f'<html lang="{language}" data-theme="dark">' in shown
        assert "css/base.css" in shown
        assert Page(shown).offences == []


FULL = {"en": ("is full", "Free some space"), "zh-hans": ("已满", "腾出空间")}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("language", FULL)
def test_a_full_disk_is_named_and_what_to_do(as_alice: Client, dialog: Dialog, language: str) -> None:
    as_alice.raise_request_exception = False
    as_alice.cookies["django_language"] = language

    with full_database():
        response = as_alice.post(f"/dialogs/{dialog.pk}/send/", {"content": LARGE})

    shown = response.content.decode()
    assert response.status_code == 507
    assert all(words in shown for words in FULL[language])
    assert Page(shown).offences == []
    assert not Message.objects.exists()


@pytest.mark.parametrize("theme", ["auto", "light", "dark"])
def test_a_chosen_theme_is_in_the_next_page(client: Client, db: Any, theme: str) -> None:
    response = client.post("/preferences/theme/", {"theme": theme, "next": "/login/"})

    assert response["Location"] == "/login/"
    assert f'data-theme="{theme}"' in client.get("/login/").content.decode()


def test_a_theme_that_does_not_exist_is_not_kept_and_one_is_set_by_post_only(client: Client, db: Any) -> None:
    client.post("/preferences/theme/", {"theme": '"><script>', "next": "/login/"})
    assert THEME_COOKIE not in client.cookies
    assert client.get("/preferences/theme/").status_code == 405

    client.cookies[THEME_COOKIE] = '"><script>'
    assert 'data-theme="auto"' in client.get("/login/").content.decode()


def test_the_browsers_language_is_the_first_guess_and_a_chosen_one_the_languages_own(client: Client, db: Any) -> None:
    guessed = client.get("/login/", headers={"accept-language": "zh-CN,zh;q=0.9"}).content.decode()
    page = client.get("/login/").content.decode()
    client.post("/preferences/language/", {"language": "zh-hans", "next": "/login/"})

    assert '<html lang="zh-hans"' in guessed
    assert '<html lang="en"' in page
    assert "简体中文" in page
    assert '<html lang="zh-hans"' in client.get("/login/").content.decode()


def test_nobody_is_led_away_by_a_preference(client: Client, db: Any) -> None:
    theme = client.post("/preferences/theme/", {"theme": "dark", "next": "https://evil.example/"})
    language = client.post("/preferences/language/", {"language": "en", "next": "https://evil.example/"})

    assert theme["Location"] == "/"
    assert language["Location"] == "/"


DISPLAY = {"show": "on", "detail": "detailed", "auto_hide_seconds": "7", "highlight_p1": "on"}


def test_who_never_chose_sees_seed_4s_defaults(as_alice: Client) -> None:
    fields = as_alice.get("/preferences/compaction/").context["form"].initial

    assert fields == {
        "show": True,
        "detail": "normal",
        "auto_hide_seconds": 3,
        "highlight_p1": True,
        "review_drafts": False,
    }


def test_a_person_chooses_how_compactions_are_shown(as_alice: Client, alice: User) -> None:
    response = as_alice.post("/preferences/compaction/", DISPLAY | {"next": "/?shelf=trash"})

    kept = CompactionDisplay.objects.get(user=alice)
    assert (response.status_code, response["Location"]) == (303, "/?shelf=trash")
    assert (kept.show, kept.detail, kept.auto_hide_seconds) == (True, "detailed", 7)
    # What is not ticked is not sent.
    assert (kept.highlight_p1, kept.review_drafts) == (True, False)


def test_what_was_chosen_stands_in_the_form_can_be_changed_and_is_not_anothers(
    as_alice: Client, as_bob: Client, alice: User
) -> None:
    as_alice.post("/preferences/compaction/", DISPLAY)
    assert '<option value="detailed" selected>' in as_alice.get("/preferences/compaction/").content.decode()
    assert as_bob.get("/preferences/compaction/").context["form"].initial["detail"] == "normal"

    as_alice.post("/preferences/compaction/", DISPLAY | {"detail": "minimal"})

    assert CompactionDisplay.objects.get(user=alice).detail == "minimal"


@pytest.mark.parametrize("wrong", [{"auto_hide_seconds": "0"}, {"auto_hide_seconds": "11"}, {"detail": "loud"}])
def test_a_choice_that_does_not_exist_is_refused_beside_its_field(as_alice: Client, wrong: dict[str, str]) -> None:
    response = as_alice.post("/preferences/compaction/", DISPLAY | wrong)

    assert response.status_code == 422
    assert list(response.context["form"].errors) == list(wrong)
    assert not CompactionDisplay.objects.exists()
