"""What is done to a whole dialog from a list: with and without htmx."""

from __future__ import annotations

import json

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from dialogs.models import Agent, Dialog
from dialogs.transfer import export_json
from dialogs.turns.writes.messages import post_message
from tests.dialogs.conftest import Maker
from tests.dialogs.pages.views.pages import HTMX, Page, page


def where(dialog: Dialog) -> str:
    """The shelf that it is on now; "nowhere" once erased."""
    row = Dialog.objects.filter(pk=dialog.pk).first()
    if row is None:
        return "nowhere"
    return "trash" if row.trashed_at else "archived" if row.archived_at else "active"


@pytest.mark.parametrize(
    ("action", "start", "end"),
    [
        ("archive", {}, "active -> archived"),
        ("unarchive", {"archived": True}, "archived -> active"),
        ("trash", {}, "active -> trash"),
        ("restore", {"trashed": True}, "trash -> active"),
        ("erase", {"trashed": True}, "trash -> nowhere"),
        # Erasing is for the trash alone.
        ("erase", {}, "active -> active"),
    ],
)
@pytest.mark.parametrize("headers", [{}, HTMX], ids=["plain", "htmx"])
def test_an_action_moves_a_dialog_and_leads_back(
    as_alice: Client, a_dialog: Maker, action: str, start: dict[str, bool], end: str, headers: dict[str, str]
) -> None:
    dialog = a_dialog("The garden", **start)
    before = where(dialog)
    back = "/?shelf=archived&q=garden"

    response = as_alice.post(f"/dialogs/{dialog.pk}/{action}/", {"next": back}, headers=headers, follow=True)

    assert f"{before} -> {where(dialog)}" == end
    assert response.redirect_chain == [(back, 303)]
    assert (b"<html" in response.content) is (headers == {})
    assert 'class="message message-' in response.content.decode()


@pytest.mark.parametrize("headers", [{}, HTMX], ids=["plain", "htmx"])
def test_a_dialog_is_renamed_in_its_row(as_alice: Client, dialog: Dialog, headers: dict[str, str]) -> None:
    form = Page(as_alice.get(f"/?rename={dialog.pk}", headers=headers).content.decode())
    as_alice.post(f"/dialogs/{dialog.pk}/rename/", {"title": "  The   orchard "}, headers=headers)

    assert any(attrs.get("name") == "title" for _tag, attrs in form.tags)
    assert Dialog.objects.get().title == "The orchard"


def test_an_empty_name_is_refused_in_words(as_alice: Client, a_dialog: Maker) -> None:
    dialog = a_dialog("Kept")

    response = as_alice.post(f"/dialogs/{dialog.pk}/rename/", {"title": " \0 "}, follow=True)

    assert "needs a name" in response.content.decode()
    assert Dialog.objects.get().title == "Kept"


@pytest.mark.parametrize("evil", ["https://evil.example/", "//evil.example", "javascript:alert(1)", "/\\evil.example"])
def test_nobody_is_led_away_from_the_site(as_alice: Client, dialog: Dialog, evil: str) -> None:
    response = as_alice.post(f"/dialogs/{dialog.pk}/archive/", {"next": evil})

    assert response["Location"] == "/"


@pytest.mark.parametrize("action", ["archive", "stop"])
def test_a_way_back_that_is_no_path_leads_to_a_page_of_ours(as_alice: Client, dialog: Dialog, action: str) -> None:
    response = as_alice.post(f"/dialogs/{dialog.pk}/{action}/", {"next": "{{7*7}}"})

    assert response.status_code in {302, 303}
    assert response["Location"].startswith("/")


@pytest.mark.parametrize(("action", "words"), [("trash", "kept for 30 days"), ("erase", "cannot be undone")])
def test_deleting_asks_first(as_alice: Client, a_dialog: Maker, action: str, words: str) -> None:
    dialog = a_dialog("The garden", trashed=action == "erase")
    url = f"/dialogs/{dialog.pk}/{action}/?next=/%3Fshelf%3Dtrash"

    asked = page(as_alice, url)
    modal = as_alice.get(url, headers=HTMX | {"HX-Current-URL": "http://testserver/?shelf=trash"}).content.decode()

    assert words in asked.text
    assert "The garden" in asked.text
    assert "/?shelf=trash" in asked.links()
    assert modal.startswith('<dialog class="modal"')
    assert 'hx-target="#dialogs"' in modal


def test_away_from_the_list_deleting_leads_to_a_page(as_alice: Client, dialog: Dialog) -> None:
    headers = HTMX | {"HX-Current-URL": f"http://testserver/dialogs/{dialog.pk}/"}

    modal = as_alice.get(f"/dialogs/{dialog.pk}/trash/", headers=headers).content.decode()

    assert "<dialog" in modal
    assert "hx-target" not in modal


def test_a_dialog_is_downloaded_under_its_name(as_alice: Client, dialog: Dialog) -> None:
    post_message(dialog=dialog, content="过敏清单")

    as_json = as_alice.get(f"/dialogs/{dialog.pk}/export.json")
    as_markdown = as_alice.get(f"/dialogs/{dialog.pk}/export.md")

    assert json.loads(as_json.content)["messages"][0]["content"] == "过敏清单"
    assert "filename*=utf-8''%E8%BF%87" in as_json["Content-Disposition"]
    assert "过敏清单" in as_markdown.content.decode()
    assert as_markdown["Content-Type"].startswith("text/markdown")
    assert as_alice.post(f"/dialogs/{dialog.pk}/export.json").status_code == 405


def test_an_exported_dialog_is_imported_as_ones_own(as_bob: Client, bob: User, dialog: Dialog) -> None:
    post_message(dialog=dialog, content="Hello")
    dialog.refresh_from_db()
    file = SimpleUploadedFile("dialog.json", json.dumps(export_json(dialog)).encode())

    response = as_bob.post("/dialogs/import/", {"file": file})

    copy = Dialog.objects.get(owner=bob)
    assert response["Location"] == f"/dialogs/{copy.pk}/"
    assert copy.messages.get().content == "Hello"


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "empty"),
        (b"{nonsense", "not JSON: line 1"),
        (b"\xff\xfe\x00", "not JSON"),
        (b'{"format": 99}', "errorlist"),
    ],
)
def test_a_bad_file_is_refused_with_its_reason(as_alice: Client, agent: Agent, content: bytes, complaint: str) -> None:
    response = as_alice.post("/dialogs/import/", {"file": SimpleUploadedFile("dialog.json", content)})

    assert response.status_code == 422
    assert complaint in response.content.decode()
    assert not Dialog.objects.exists()


@pytest.mark.parametrize("is_admin", [True, False])
def test_an_import_without_an_agent_tells_an_admin_how_to_add_one(
    as_alice: Client, alice: User, dialog: Dialog, is_admin: bool
) -> None:
    file = SimpleUploadedFile("dialog.json", json.dumps(export_json(dialog)).encode())
    Agent.objects.update(enabled=False)
    alice.is_staff = is_admin
    alice.save()

    shown = as_alice.post("/dialogs/import/", {"file": file}).content.decode()

    assert "There is no agent to go on with." in shown
    assert ('href="/admin/dialogs/agent/add/"' in shown) is is_admin
    assert ("An admin must add one first." in shown) is not is_admin


def test_importing_without_a_file_asks_for_one(as_alice: Client) -> None:
    assert "Choose a file" in as_alice.post("/dialogs/import/").content.decode()


def test_an_action_without_a_csrf_token_changes_nothing(alice: User, dialog: Dialog) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice)

    response = client.post(f"/dialogs/{dialog.pk}/trash/")

    assert response.status_code == 403
    assert "too old" in response.content.decode()
    assert where(dialog) == "active"
