"""Coming in: the one-time link, the login page and its brake, the password page."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest
from django.conf import LazySettings, settings
from django.contrib.auth import SESSION_KEY
from django.contrib.auth.models import User
from django.core.cache import cache
from django.db import connection
from django.test import Client

from dialogs.common.shared_redis import waiting_client
from dialogs.pages import accounts
from dialogs.pages.accounts import FAILURES_ALLOWED, sign_in_path


@pytest.fixture(autouse=True)
def _forget_failures() -> None:
    cache.clear()
    counted = waiting_client(settings.REDIS_URL)
    for key in counted.scan_iter("failed-logins-*"):
        counted.delete(key)


def signed_in(client: Client) -> bool:
    return SESSION_KEY in client.session


def test_looking_at_a_link_does_not_use_it_up(client: Client, alice: User) -> None:
    path = sign_in_path(alice)

    shown = [client.get(path) for _ in range(3)]

    assert [response.status_code for response in shown] == [200, 200, 200]
    assert not signed_in(client)
    assert "no-store" in shown[0]["Cache-Control"]


def test_a_link_signs_in_once(client: Client, alice: User) -> None:
    path = sign_in_path(alice)

    assert client.post(path).status_code == 302
    assert signed_in(client)

    other = Client()
    again = other.post(path)
    assert again.status_code == 410
    assert b"signin_link" in again.content
    assert not signed_in(other)


@pytest.mark.parametrize(("chosen", "kept"), [("a-long-enough-one", "a-long-enough-one"), ("", "alice-pass-1")])
def test_a_chosen_password_is_kept_and_none_keeps_the_old_one(
    client: Client, alice: User, chosen: str, kept: str
) -> None:
    client.post(sign_in_path(alice), {"password": chosen})

    alice.refresh_from_db()
    assert alice.check_password(kept)
    assert signed_in(client)


def test_a_weak_password_is_refused_and_the_link_stays_good(client: Client, alice: User) -> None:
    path = sign_in_path(alice)

    refused = client.post(path, {"password": "12345"})

    assert b"too short" in refused.content
    assert not signed_in(client)
    assert client.get(path).status_code == 200


def test_the_login_page_signs_in(client: Client, alice: User) -> None:
    assert client.get("/login/").status_code == 200

    client.post("/login/", {"username": "alice", "password": "alice-pass-1"})

    assert signed_in(client)


@pytest.mark.parametrize("counted", ["here", "by-all-web-processes-together", "without-redis-by-each-process"])
def test_after_many_wrong_passwords_even_the_right_one_waits(
    client: Client, alice: User, bob: User, settings: LazySettings, counted: str
) -> None:
    if counted == "without-redis-by-each-process":
        settings.REDIS_URL = "redis://127.0.0.1:1/0"
    for _ in range(FAILURES_ALLOWED):
        client.post("/login/", {"username": "alice", "password": "wrong"})
        if counted == "by-all-web-processes-together":
            # What another process knows of them.
            cache.clear()

    refused = client.post("/login/", {"username": "alice", "password": "alice-pass-1"})

    assert b"Too many wrong passwords" in refused.content
    assert not signed_in(client)
    client.post("/login/", {"username": "bob", "password": "bob-pass-1"})
    assert signed_in(client)


def test_the_admin_uses_the_one_login_page_and_who_is_no_staff_is_told_so(client: Client, alice: User) -> None:
    assert client.get("/admin/", follow=True).redirect_chain[-1][0] == "/login/?next=/admin/"

    client.force_login(alice)

    assert b"signed in as alice" in client.get("/admin/", follow=True).content


def test_a_password_is_changed(as_alice: Client, alice: User) -> None:
    new = {"new_password1": "quite-another-1", "new_password2": "quite-another-1"}

    assert as_alice.get("/account/password/").status_code == 200
    as_alice.post("/account/password/", {"old_password": "alice-pass-1", **new})

    alice.refresh_from_db()
    assert alice.check_password("quite-another-1")


def test_who_has_no_password_yet_chooses_one_without_an_old_one(client: Client, alice: User) -> None:
    alice.set_unusable_password()
    alice.save()
    client.post(sign_in_path(alice), {"password": ""})

    client.post("/account/password/", {"new_password1": "the-first-one-1", "new_password2": "the-first-one-1"})

    alice.refresh_from_db()
    assert alice.check_password("the-first-one-1")
    assert signed_in(client)


@pytest.mark.django_db(transaction=True)
def test_who_waits_too_long_is_told_to_try_again_and_has_guessed_nothing(
    client: Client, alice: User, a_long_line: None
) -> None:
    for _ in range(FAILURES_ALLOWED + 1):
        answer = client.post("/login/", {"username": "alice", "password": "alice-pass-1"})

    assert b"Too many people sign in at this moment. Wait a minute" in answer.content
    assert not signed_in(client)


@pytest.mark.django_db(transaction=True)
def test_a_link_whose_password_waits_too_long_stays_good(client: Client, alice: User, a_long_line: None) -> None:
    path = sign_in_path(alice)

    answer = client.post(path, {"password": "a-long-enough-one"})

    assert b"Too many people sign in at this moment" in answer.content
    assert client.post(path, {"password": ""}).status_code == 302


@pytest.mark.django_db(transaction=True)
def test_a_password_that_waits_too_long_is_not_changed(client: Client, alice: User, a_long_line: None) -> None:
    alice.set_unusable_password()
    alice.save()
    client.force_login(alice)
    fields = {"new_password1": "fresh-pass-22", "new_password2": "fresh-pass-22"}

    answer = client.post("/account/password/", fields)

    assert b"Too many people sign in at this moment" in answer.content


@pytest.mark.django_db(transaction=True)
def test_who_waits_holds_no_connection_that_a_page_needs(alice: User, a_long_line: None) -> None:
    connection.ensure_connection()

    with pytest.raises(accounts.TooManySignIns):
        alice.set_password("fresh-pass-22")

    assert connection.connection is None


def test_an_unknown_name_takes_as_many_hashes_as_a_wrong_password(
    client: Client, db: Any, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.PASSWORD_HASHERS = settings.PASSWORD_HASHERS[1:]
    User.objects.create_user("carol", password="carol-pass-1")
    in_line = Mock(side_effect=accounts._in_line)
    monkeypatch.setattr(accounts, "_in_line", in_line)

    counts = []
    for name in ("carol", "nobody"):
        in_line.reset_mock()
        client.post("/login/", {"username": name, "password": "wrong"})
        counts.append(in_line.call_count)

    assert counts == [1, 1]


@pytest.mark.parametrize(("address", "is_told"), [("/login/", False), ("/login/?next=/admin/", True)])
def test_only_who_was_sent_to_the_login_page_is_told_that_they_may_not_open_another(
    as_alice: Client, address: str, is_told: bool
) -> None:
    page = as_alice.get(address).content.decode()

    assert ("who may not open that page" in page) is is_told
