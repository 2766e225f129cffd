"""Theme and language: kept in cookies, drawn by the server, open to who is not signed in. And how compactions show."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from dialogs.models import CompactionDisplay
from dialogs.pages.views.context import THEME_COOKIE


@pytest.mark.parametrize("theme", ["auto", "light", "dark"])
def test_a_chosen_theme_is_in_the_next_page(client: Client, db: Any, theme: str) -> None:
    response = client.post("/preferences/theme/", {"theme": theme, "next": "/login/"})

    assert response["Location"] == "/login/"
    assert f'data-theme="{theme}"' in client.get("/login/").content.decode()


def test_a_theme_that_does_not_exist_is_not_kept(client: Client, db: Any) -> None:
    client.post("/preferences/theme/", {"theme": '"><script>', "next": "/login/"})
    assert THEME_COOKIE not in client.cookies

    client.cookies[THEME_COOKIE] = '"><script>'
    assert 'data-theme="auto"' in client.get("/login/").content.decode()


def test_a_theme_is_set_by_post_only(client: Client, db: Any) -> None:
    assert client.get("/preferences/theme/").status_code == 405


def test_a_chosen_language_is_the_languages_own(client: Client, db: Any) -> None:
    page = client.get("/login/").content.decode()
    client.post("/preferences/language/", {"language": "zh-hans", "next": "/login/"})

    assert '<html lang="en"' in page
    assert "简体中文" in page
    assert '<html lang="zh-hans"' in client.get("/login/").content.decode()


def test_the_browsers_language_is_the_first_guess(client: Client, db: Any) -> None:
    page = client.get("/login/", headers={"accept-language": "zh-CN,zh;q=0.9"}).content.decode()

    assert '<html lang="zh-hans"' in page


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


def test_what_was_chosen_stands_in_the_form_and_can_be_changed(as_alice: Client, alice: User) -> None:
    as_alice.post("/preferences/compaction/", DISPLAY)
    assert '<option value="detailed" selected>' in as_alice.get("/preferences/compaction/").content.decode()

    as_alice.post("/preferences/compaction/", DISPLAY | {"detail": "minimal"})

    assert CompactionDisplay.objects.get(user=alice).detail == "minimal"


@pytest.mark.parametrize("wrong", [{"auto_hide_seconds": "0"}, {"auto_hide_seconds": "11"}, {"detail": "loud"}])
def test_a_choice_that_does_not_exist_is_refused_beside_its_field(as_alice: Client, wrong: dict[str, str]) -> None:
    response = as_alice.post("/preferences/compaction/", DISPLAY | wrong)

    assert response.status_code == 422
    assert list(response.context["form"].errors) == list(wrong)
    assert not CompactionDisplay.objects.exists()


def test_one_persons_choice_is_not_anothers(as_alice: Client, as_bob: Client) -> None:
    as_alice.post("/preferences/compaction/", DISPLAY)

    assert as_bob.get("/preferences/compaction/").context["form"].initial["detail"] == "normal"


def test_who_is_not_signed_in_has_nothing_to_choose(client: Client, db: Any) -> None:
    assert client.get("/preferences/compaction/")["Location"].startswith("/login/")
