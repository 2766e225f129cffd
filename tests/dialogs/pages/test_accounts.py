"""The first user and the one-time link, as `up` uses them."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.utils import timezone

from dialogs.pages.accounts import ensure_first_user, sign_in_path, tokens, user_of_link
from dominds.supervisor import lock


def parts(path: str) -> dict[str, str]:
    _welcome, uid, token = path.strip("/").split("/")
    return {"uid": uid, "token": token}


def test_the_first_user_is_a_superuser_without_a_password_and_made_once(db: Any) -> None:
    user = ensure_first_user()

    assert (user.username, user.is_superuser, user.is_staff) == ("admin", True, True)
    assert not user.has_usable_password()
    assert ensure_first_user() == user


def test_another_superuser_is_as_good_as_the_named_one(sam: User) -> None:
    assert ensure_first_user() == sam


def test_the_password_from_the_environment_is_set_but_never_over_another(db: Any, settings: Any) -> None:
    settings.DOMINDS_ADMIN_PASSWORD = "from-the-environment"
    assert ensure_first_user().check_password("from-the-environment")

    settings.DOMINDS_ADMIN_PASSWORD = "changed-later"

    assert ensure_first_user().check_password("from-the-environment")


def test_a_link_names_its_user_for_a_day(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    link = parts(sign_in_path(alice))
    assert user_of_link(**link) == alice

    then = tokens._now() + timedelta(seconds=settings.PASSWORD_RESET_TIMEOUT + 1)
    monkeypatch.setattr(tokens, "_now", lambda: then)

    assert user_of_link(**link) is None


def test_a_sign_in_within_the_same_second_ends_the_link(alice: User) -> None:
    alice.last_login = timezone.now().replace(microsecond=1)
    alice.save()
    link = parts(sign_in_path(alice))

    alice.last_login = alice.last_login.replace(microsecond=2)
    alice.save()

    assert user_of_link(**link) is None


@pytest.mark.parametrize("uid", ["", "x", "!!", "OTk5", "8J-YgA", "OTk5OTk5OTk5OTk5OTk5OTk5OTk5OTk5"])
def test_a_made_up_user_is_nobody(uid: str, alice: User) -> None:
    assert user_of_link(uid=uid, token=tokens.make_token(alice)) is None


def test_a_link_opens_neither_another_persons_account_nor_one_that_is_shut_out(alice: User, bob: User) -> None:
    link = parts(sign_in_path(alice))
    assert user_of_link(**link | {"uid": parts(sign_in_path(bob))["uid"]}) is None

    User.objects.update(is_active=False)
    assert user_of_link(**link) is None


def test_the_command_prints_a_link_that_works(alice: User) -> None:
    out = StringIO()

    call_command("signin_link", "alice", "--address", "http://example.test:1/", stdout=out)

    address, _, path = out.getvalue().strip().partition("/welcome")
    assert address == "http://example.test:1"
    assert user_of_link(**parts(f"/welcome{path}")) == alice


@pytest.mark.parametrize(
    ("named", "why"),
    [(["nobody"], "no active user “nobody”"), ([], "DOMINDS_ADMIN_USER")],
    ids=["nobody", "a common user who is not promoted"],
)
def test_the_command_says_why_there_is_no_link(db: Any, named: list[str], why: str) -> None:
    User.objects.create_user("admin")

    with pytest.raises(CommandError, match=why):
        call_command("signin_link", *named)


@pytest.mark.parametrize(
    ("host", "https", "address"),
    [
        ("127.0.0.1", False, "http://127.0.0.1:8123"),
        ("0.0.0.0", False, "http://127.0.0.1:8123"),  # all addresses is no address to go to
        ("::1", False, "http://[::1]:8123"),
        ("dominds.test", True, "https://dominds.test:8123"),
    ],
)
def test_the_printed_link_leads_to_where_dominds_listens(
    host: str, https: bool, address: str, sam: User, settings: Any
) -> None:
    settings.DOMINDS_HOST, settings.DOMINDS_PORT, settings.HTTPS = host, 8123, https
    out = StringIO()

    call_command("signin_link", stdout=out)

    assert out.getvalue().startswith(f"{address}/welcome/")


def test_the_printed_link_leads_to_the_port_that_up_was_given(sam: User, settings: Any, tmp_path: Path) -> None:
    settings.DOMINDS_DATA_DIR = tmp_path
    out = StringIO()

    with lock.sole_user(tmp_path, purpose="starting it"), lock.listening(tmp_path, "0.0.0.0", 9876):
        call_command("signin_link", stdout=out)

    assert out.getvalue().startswith("http://127.0.0.1:9876/welcome/")
