"""Theme and language: kept in cookies, drawn by the server, open to who is not signed in."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from dialogs.views.context import THEME_COOKIE


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
