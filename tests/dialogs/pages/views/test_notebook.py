"""The notebook on the page: what it shows, and what a person does to it."""

from __future__ import annotations

import pytest
from django.test import Client
from django.utils import timezone

from dialogs.agents.writes import add_reminder, remove_reminder, update_reminder, write_taskdoc
from dialogs.models import LLM, Course, Dialog
from dialogs.models.reminder import Author
from tests.dialogs.dom import element
from tests.dialogs.pages.views.pages import HTMX, Page, page

ACTIONS = (
    "reminders",
    "reminders/1/edit",
    "reminders/1/remove",
    "reminders/2/restore",
    "reminders/1/move",
    "taskdoc",
)
EVERY_ACTION = pytest.mark.parametrize("action", ACTIONS)
BOTH = pytest.mark.parametrize("headers", [{}, HTMX], ids=["plain", "htmx"])
FORM = {"content": "Mine", "version": "1", "direction": "up"}
HOSTILE = "</textarea></template><script>alert(1)</script><img src=x onerror=alert(1)>"


@pytest.fixture
def dialog(dialog: Dialog) -> Dialog:
    """Alice's, with reminders 1 and 3 that are kept and 2 that is removed."""
    for content in ("Apples", "Pears", "Plums"):
        add_reminder(dialog=dialog, content=content, author=Author.AGENT)
    remove_reminder(dialog=dialog, number=2)
    return dialog


def url(dialog: Dialog, action: str) -> str:
    return f"/dialogs/{dialog.pk}/{action}/"


def everything(dialog: Dialog) -> tuple[object, ...]:
    return Dialog.objects.values().get(pk=dialog.pk), *dialog.reminders.order_by("number").values()


def kept(dialog: Dialog) -> list[int]:
    return list(dialog.reminders.filter(removed_at=None).values_list("number", flat=True))


def shown(client: Client, dialog: Dialog, dom_id: str = "notebook") -> str:
    """The words inside one element of the dialog's page."""
    return Page(html(client, dialog, dom_id)).text


def html(client: Client, dialog: Dialog, dom_id: str) -> str:
    found = element(client.get(f"/dialogs/{dialog.pk}/").content.decode(), dom_id)
    assert found is not None, dom_id
    return found.inner


# --- What a person does -----------------------------------------------------------------------


@EVERY_ACTION
@BOTH
def test_every_action_is_done_with_and_without_javascript(
    as_alice: Client, dialog: Dialog, action: str, headers: dict[str, str]
) -> None:
    before = everything(dialog)

    response = as_alice.post(url(dialog, action), FORM | {"direction": "down"}, headers=headers)

    assert response.status_code == (204 if headers else 302)
    assert everything(dialog) != before


def test_what_a_person_adds_or_edits_is_the_persons(as_alice: Client, dialog: Dialog) -> None:
    as_alice.post(url(dialog, "reminders"), {"content": "Buy nails\n  two boxes"})
    as_alice.post(url(dialog, "reminders/3/edit"), FORM)

    edited, added = dialog.reminders.filter(number__gte=3).order_by("number")
    assert (added.content, added.author) == ("Buy nails\n  two boxes", "person")
    assert (edited.content, edited.author, edited.version) == ("Mine", "person", 2)


@pytest.mark.parametrize(("direction", "order"), [("up", [3, 1]), ("down", [1, 3]), ("", [1, 3])])
def test_a_reminder_is_moved(as_alice: Client, dialog: Dialog, direction: str, order: list[int]) -> None:
    as_alice.post(url(dialog, "reminders/3/move"), {"direction": direction})

    assert kept(dialog) == order


@pytest.mark.parametrize("action", ["reminders/1/edit", "taskdoc"])
@pytest.mark.parametrize("version", ["1", "", "x", "99", "9" * 5000])
def test_what_the_agent_changed_meanwhile_is_not_overwritten(
    as_alice: Client, dialog: Dialog, action: str, version: str
) -> None:
    update_reminder(dialog=dialog, number=1, content="The agent's", author=Author.AGENT)
    write_taskdoc(dialog=dialog, content="The agent's")
    before = everything(dialog)
    form = {"content": "My half-written words", "version": version}

    fragment = as_alice.post(url(dialog, action), form, headers=HTMX)
    plain = as_alice.post(url(dialog, action), form)

    assert (fragment.status_code, plain.status_code) == (422, 422)
    assert "changed meanwhile" in fragment.content.decode()
    assert "<" not in fragment.content.decode()
    # Without JavaScript what was typed comes back in the page.
    assert "My half-written words" in Page(plain.content.decode()).text
    assert everything(dialog) == before


@pytest.mark.parametrize(
    ("action", "content", "complaint"),
    [
        ("reminders", " ", "needs a text"),
        ("reminders", "x" * 8_001, "8,000 characters"),
        ("reminders/1/edit", " ", "needs a text"),
        ("reminders/1/edit", "x" * 8_001, "8,000 characters"),
        ("taskdoc", "x" * 100_001, "100,000 characters"),
        ("reminders/2/edit", "Mine", "There are: 1, 3."),
        ("reminders/99/remove", "", "There are: 1, 3."),
        ("reminders/1/restore", "", "no removed reminder 1"),
        ("reminders/99/restore", "", "no removed reminder 99"),
        (f"reminders/{10**17}/move", "", "There are: 1, 3."),
    ],
)
def test_a_refusal_says_why(as_alice: Client, dialog: Dialog, action: str, content: str, complaint: str) -> None:
    before = everything(dialog)

    response = as_alice.post(url(dialog, action), {"content": content, "version": "1"}, headers=HTMX)

    assert response.status_code == 422
    assert complaint in response.content.decode()
    assert everything(dialog) == before


# --- What it shows ----------------------------------------------------------------------------


def test_an_empty_notebook_says_what_it_is_for(as_alice: Client, dialog: Dialog) -> None:
    dialog.reminders.all().delete()

    words = shown(as_alice, dialog)

    assert "The agent sees it in every course." in words
    assert "What must not be forgotten when a new course begins." in words
    assert "Removed reminders" not in words
    assert shown(as_alice, dialog, "notebook-count") == ""


def test_reminders_stand_in_order_and_removed_ones_apart(as_alice: Client, dialog: Dialog) -> None:
    as_alice.post(url(dialog, "reminders/3/move"), {"direction": "up"})

    words = shown(as_alice, dialog)

    order = ("Plums", "Apples", "Removed reminders", "Pears")
    assert sorted(order, key=words.index) == list(order)
    assert "Restore" in shown(as_alice, dialog, "reminders-removed")
    assert shown(as_alice, dialog, "notebook-count") == "2"


def test_a_reminder_says_who_wrote_it_when_and_what_it_is(as_alice: Client, dialog: Dialog) -> None:
    Course.objects.update(level="critical")
    update_reminder(dialog=dialog, number=1, content="First step\nSecond step", author=Author.AGENT)
    add_reminder(dialog=dialog, content="Mine", author=Author.PERSON)

    agents, mine = shown(as_alice, dialog, "reminder-1"), shown(as_alice, dialog, "reminder-4")

    for words in ("agent", "continuation package", "course 1", "First step\nSecond step", str(timezone.now().year)):
        assert words in agents
    assert "you" in mine
    assert "continuation package" not in mine


def test_the_taskdoc_is_shown_as_markdown_and_edited_as_text(as_alice: Client, dialog: Dialog) -> None:
    write_taskdoc(dialog=dialog, content="# Boat\n\nBuild **it**.")

    inside = html(as_alice, dialog, "taskdoc")

    assert "<strong>it</strong>" in inside
    assert "# Boat\n\nBuild **it**.</textarea>" in inside
    # One more than at the beginning, so that a later writer is noticed.
    assert 'name="version" value="2"' in inside


def test_what_was_written_stays_text(as_alice: Client, dialog: Dialog) -> None:
    write_taskdoc(dialog=dialog, content=HOSTILE)
    for number in (1, 3):
        update_reminder(dialog=dialog, number=number, content=HOSTILE, author=Author.AGENT)
    remove_reminder(dialog=dialog, number=3)

    found = page(as_alice, f"/dialogs/{dialog.pk}/")

    assert found.offences == []
    assert "img" not in [tag for tag, _attrs in found.tags]


@pytest.mark.parametrize(("tool_calling", "said"), [("auto", False), ("off", True), ("refused", True)])
def test_without_tools_the_panel_says_that_only_a_person_can_write(
    as_alice: Client, dialog: Dialog, tool_calling: str, said: bool
) -> None:
    LLM.objects.update(tool_calling=tool_calling)

    assert ("is offered no tools" in shown(as_alice, dialog)) is said


@pytest.mark.parametrize(("query", "is_open"), [("", False), ("?notebook=", True)])
def test_without_javascript_the_address_opens_the_drawer(
    as_alice: Client, dialog: Dialog, query: str, is_open: bool
) -> None:
    found = page(as_alice, f"/dialogs/{dialog.pk}/{query}")

    drawers = [attrs for tag, attrs in found.tags if tag == "dialog" and attrs.get("id") == "notebook-drawer"]
    assert ["open" in attrs for attrs in drawers] == [is_open]
