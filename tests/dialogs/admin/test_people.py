"""Who may add people cannot rise by it: Pat is staff with all permissions about people and groups, and no superuser."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.db import connection
from django.test import Client

from dialogs.api.writes.api_keys import create_key, revoke_key
from dialogs.models import ApiKey
from dialogs.pages import accounts
from tests.dialogs.admin.conftest import told

NEW = {"password1": "a-long-pass-1", "password2": "a-long-pass-1", "usable_password": "true"}
RIGHTS = {"is_staff": "on", "is_superuser": "on", "is_active": "on"}


@pytest.fixture
def pat(db: Any) -> User:
    pat = User.objects.create_user("pat", password="pat-pass-1", is_staff=True)
    pat.user_permissions.set(Permission.objects.filter(content_type__app_label="auth"))
    return pat


@pytest.fixture
def theirs(client: Client, pat: User) -> Client:
    client.force_login(pat)
    return client


def change(client: Client, person: User, **fields: Any) -> int:
    data = {"username": person.username, "date_joined_0": "2026-01-01", "date_joined_1": "00:00:00", "is_active": "on"}
    return int(client.post(f"/admin/auth/user/{person.pk}/change/", data | fields).status_code)


@pytest.mark.parametrize("who", ["pat", "alice"])
def test_nobody_is_made_a_superuser_by_staff_who_are_none(theirs: Client, alice: User, who: str) -> None:
    person, everything = User.objects.get(username=who), Permission.objects.get(codename="change_provider")

    assert change(theirs, person, **RIGHTS, user_permissions=[str(everything.pk)]) == 302

    person.refresh_from_db()
    assert not person.is_superuser
    assert not person.has_perm("dialogs.change_provider")


def test_they_still_switch_people_off(theirs: Client, alice: User) -> None:
    assert change(theirs, alice, is_active="") == 302

    alice.refresh_from_db()
    assert not alice.is_active


def test_they_add_people_who_may_nothing(theirs: Client) -> None:
    theirs.post("/admin/auth/user/add/", NEW | RIGHTS | {"username": "nina"})

    nina = User.objects.get(username="nina")
    assert (nina.is_staff, nina.is_superuser) == (False, False)


@pytest.mark.parametrize("page", ["change/", "password/", "delete/"])
def test_a_superuser_is_out_of_their_reach(theirs: Client, sam: User, page: str) -> None:
    answer = theirs.post(f"/admin/auth/user/{sam.pk}/{page}", {"post": "yes", "password1": "x", "password2": "x"})

    assert answer.status_code == 403
    assert User.objects.get(username="sam").check_password("sam-pass-1")


def test_they_set_nobodys_password(theirs: Client, alice: User) -> None:
    new = {"password1": "a-long-pass-1", "password2": "a-long-pass-1", "usable_password": "true"}

    assert theirs.post(f"/admin/auth/user/{alice.pk}/password/", new).status_code == 403

    alice.refresh_from_db()
    assert alice.check_password("alice-pass-1")


def test_a_group_is_given_permissions_by_superusers_only(theirs: Client) -> None:
    group = Group.objects.create(name="helpers")

    answers = [
        theirs.post(f"/admin/auth/group/{group.pk}/change/", {"name": "x"}),
        theirs.get("/admin/auth/group/add/"),
    ]

    assert [answer.status_code for answer in answers] == [403, 403]


def test_a_superuser_gives_rights_and_passwords(as_sam: Client, alice: User) -> None:
    change(as_sam, alice, is_staff="on")
    as_sam.post(f"/admin/auth/user/{alice.pk}/password/", NEW)

    alice.refresh_from_db()
    assert alice.is_staff
    assert alice.check_password("a-long-pass-1")


@pytest.mark.django_db(transaction=True)
def test_nobody_waits_for_a_lock_while_the_password_of_a_new_person_is_hashed(
    theirs: Client, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.PASSWORD_HASHERS = settings.PASSWORD_HASHERS[1:]
    locked: list[bool] = []
    in_line = accounts._in_line

    def watched(hashed: Any) -> Any:
        locked.append(connection.in_atomic_block)
        return in_line(hashed)

    monkeypatch.setattr(accounts, "_in_line", watched)

    theirs.post("/admin/auth/user/add/", NEW | {"username": "nina"})

    assert User.objects.get(username="nina").check_password("a-long-pass-1")
    assert locked[:-1] == [False]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("path", ["add/", "{0}/password/"])
def test_a_password_that_waits_too_long_is_told_beside_the_form(
    as_sam: Client, alice: User, a_long_line: None, path: str
) -> None:
    answer = as_sam.post(f"/admin/auth/user/{path.format(alice.pk)}", NEW | {"username": "nina"})

    assert answer.status_code == 200
    assert b"Too many people sign in at this moment. Wait a minute" in answer.content
    assert b'value="nina"' in answer.content or "password" in path
    assert not User.objects.filter(username="nina").exists()


def test_a_person_without_a_password_is_added_and_set(as_sam: Client, alice: User) -> None:
    as_sam.post("/admin/auth/user/add/", {"username": "nina", "usable_password": "false"})
    as_sam.post(f"/admin/auth/user/{alice.pk}/password/", {"usable_password": "false", "unset-password": "1"})

    alice.refresh_from_db()
    assert not User.objects.get(username="nina").has_usable_password()
    assert not alice.has_usable_password()


# API keys in the admin: staff see whose they are and revoke them, and never see what opens them.


LIST = "/admin/dialogs/apikey/"


@pytest.fixture
def key(alice: User) -> ApiKey:
    return create_key(owner=alice, name="Laptop")[0]


def revoke(client: Client, *keys: ApiKey) -> list[str]:
    return told(client.post(LIST, {"action": "revoke", "_selected_action": [key.pk for key in keys]}))


def test_staff_see_whose_a_key_is_and_not_its_hash(staff: Client, key: ApiKey) -> None:
    for path in (LIST, f"{LIST}{key.pk}/change/"):
        page = staff.get(path).content.decode()

        assert "alice" in page
        assert f"{key.prefix}…" in page
        assert key.sha256 not in page


def test_keys_are_revoked_and_those_that_were_are_not_counted(staff: Client, key: ApiKey, bob: User) -> None:
    other = create_key(owner=bob, name="Phone")[0]
    revoke_key(key=other)

    assert revoke(staff, key, other) == ["1 key is revoked."]
    assert not ApiKey.objects.filter(revoked_at=None).exists()


def test_a_key_of_an_account_that_was_switched_off_is_not_told_to_be_usable(
    staff: Client, key: ApiKey, alice: User
) -> None:
    User.objects.filter(pk=alice.pk).update(is_active=False)

    assert '<td class="field-state">account disabled</td>' in staff.get(LIST).content.decode()


def test_who_may_only_look_revokes_nothing(as_bob: Client, key: ApiKey, bob: User) -> None:
    User.objects.filter(pk=bob.pk).update(is_staff=True)
    bob.user_permissions.add(Permission.objects.get(codename="view_apikey"))

    revoke(as_bob, key)

    assert as_bob.get(LIST).status_code == 200
    assert ApiKey.objects.get().revoked_at is None


def test_nobody_adds_or_changes_a_key_here(staff: Client, key: ApiKey) -> None:
    assert staff.get(f"{LIST}add/").status_code == 403
    assert staff.post(f"{LIST}{key.pk}/change/", {"name": "Mine"}).status_code == 403
    assert ApiKey.objects.get().name == "Laptop"
