"""The menu of a message: what the page says of each, the entries that a script puts in, and a page without a script."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

from dialogs.compaction.work import perform
from dialogs.compaction.writes.manual_compaction import request
from dialogs.models import Dialog, Generation, Message, MessageMark
from dialogs.pages.rendering import _made
from dialogs.templatetags.dialog_tags import NO_DIALOG, NO_GENERATION, NO_MESSAGE
from dialogs.turns.writes.messages import post_message
from tests.builders import an_answer
from tests.dialogs.pages.views.pages import Page, menus, page

# What a message's menu takes of the page, and what the entries of all take together.
MOST_BYTES_OF_A_MENU, MOST_BYTES_OF_THE_ENTRIES = 600, 6_000


def html_of(client: Client, dialog: Dialog, query: str = "") -> str:
    return client.get(f"/dialogs/{dialog.pk}/{query}").content.decode()


def opened(client: Client, dialog: Dialog, message: Message) -> Page:
    """Only the menu, of the page that is asked for where no script opens it."""
    html = html_of(client, dialog, f"?menu={message.pk}")
    begin = html.index('<details class="menu message-menu" open>')
    return Page(html[begin : html.index("</details>", begin)])


def entries(menu: Page) -> set[str]:
    """Those that are not hidden, and stand in no form that is, by the beginnings of their ids."""
    found, form = set(), False
    for tag, attrs in menu.tags:
        is_hidden = "hidden" in attrs
        if tag == "form":
            form = is_hidden
        elif (tag == "a" and not is_hidden) or (tag == "button" and not is_hidden and not form):
            found.add(str(attrs["id"]).rpartition("-")[0])
    return found


def test_the_entries_stand_in_the_page_once_and_a_menu_takes_little_of_it(
    as_alice: Client, dialog: Dialog, history: list[Message]
) -> None:
    html = html_of(as_alice, dialog)

    begin = html.index('<template id="message-actions"')
    model = html[begin : html.index("</template>", begin)]
    menu = html.index('<details class="menu message-menu"')
    assert html.count('name="priority"') == 1
    assert len(model) < MOST_BYTES_OF_THE_ENTRIES
    assert html.index("</details>", menu) - menu < MOST_BYTES_OF_A_MENU
    assert set(menus(Page(html))) == {message.pk for message in history}


def test_the_entries_have_the_dialogs_address_the_persons_token_and_stand_ins_for_the_rest(
    as_alice: Client, dialog: Dialog, history: list[Message]
) -> None:
    html = html_of(as_alice, dialog)

    assert f"/dialogs/{dialog.pk}/messages/{NO_MESSAGE}/pin/" in html
    assert f"/dialogs/{dialog.pk}/generations/{NO_GENERATION}/seen/" in html
    assert str(NO_DIALOG) not in html
    assert "token-of-the-person" not in html
    assert all(attrs["value"] for _tag, attrs in Page(html).tags if attrs.get("name") == "csrfmiddlewaretoken")
    assert history


@pytest.mark.parametrize(
    "area", ["token-of-the-person", str(NO_MESSAGE), str(NO_GENERATION), "a \"<b>\" & 'c'", "area"]
)
def test_the_menu_knows_an_area_as_it_was_written(
    as_alice: Client, dialog: Dialog, history: list[Message], area: str
) -> None:
    there = f"/dialogs/{dialog.pk}/messages/{history[0].pk}/priority/"
    as_alice.post(there, {"priority": "2", "area": area})

    known = menus(Page(html_of(as_alice, dialog)))[history[0].pk]
    shown = opened(as_alice, dialog, history[0])

    assert (known.priority, known.area) == ("2", area)
    assert [attrs["value"] for _tag, attrs in shown.tags if attrs.get("name") == "area"] == [area]
    assert [attrs["value"] for tag, attrs in shown.tags if tag == "option" and "selected" in attrs] == ["2"]


def test_messages_of_many_areas_share_one_menu(as_alice: Client, dialog: Dialog, history: list[Message]) -> None:
    MessageMark.objects.bulk_create(MessageMark(message=one, priority=2, area="first") for one in history)
    html_of(as_alice, dialog)
    made = _made.cache_info().misses
    for mark in MessageMark.objects.all():
        mark.area = f"area {mark.pk}"
        mark.save()

    html_of(as_alice, dialog)

    assert _made.cache_info().misses == made


def test_an_older_message_says_why_it_cannot_be_edited(as_alice: Client, dialog: Dialog) -> None:
    first = post_message(dialog=dialog, content="Who are you?")
    assert "past-editing" not in menus(page(as_alice, f"/dialogs/{dialog.pk}/"))[first.pk].states
    an_answer(dialog)
    second = post_message(dialog=dialog, content="And then?")

    found = menus(page(as_alice, f"/dialogs/{dialog.pk}/"))

    assert ["past-editing" in found[message.pk].states for message in (first, second)] == [True, False]
    note = next(attrs for _tag, attrs in opened(as_alice, dialog, first).tags if attrs.get("class") == "menu-note")
    assert "hidden" not in note


def test_what_may_be_done_depends_on_the_message(
    as_alice: Client, alice: User, dialog: Dialog, history: list[Message]
) -> None:
    MessageMark.objects.create(message=history[-2], pinned=True, priority=1)
    perform(request(dialog=dialog, by=alice).pk, embedder="static")
    answer = an_answer(dialog, "It turns.")

    known = menus(Page(html_of(as_alice, dialog)))
    archived = next(message for message in history if "archived" in known[message.pk].states)

    assert known[answer.pk].states == ["markable", "unpinned", "answer"]
    assert known[answer.pk].generation == str(Generation.objects.get(message=answer).pk)
    assert known[history[-2].pk].states == ["markable", "pinned", "first"]
    assert entries(opened(as_alice, dialog, answer)) == {"pin", "tag", "up-to", "generation-seen"}
    assert entries(opened(as_alice, dialog, history[-2])) == {"unpin", "tag", "done", "up-to"}
    assert "bring-back" in entries(opened(as_alice, dialog, archived))


def test_without_a_script_the_menu_of_a_page_is_opened_and_its_forms_work(
    as_alice: Client, dialog: Dialog, history: list[Message]
) -> None:
    assert f"?menu={history[3].pk}#message-{history[3].pk}" in Page(html_of(as_alice, dialog)).links()

    pin = next(attrs for tag, attrs in opened(as_alice, dialog, history[3]).tags if tag == "form")
    as_alice.post(str(pin["action"]), {"pinned": "1"})

    assert MessageMark.objects.get().message == history[3]
    assert "pinned" in menus(Page(html_of(as_alice, dialog)))[history[3].pk].states


def test_the_page_of_a_menu_shows_messages_from_before_those_that_are_shown(
    as_alice: Client, dialog: Dialog, monkeypatch: pytest.MonkeyPatch, history: list[Message]
) -> None:
    monkeypatch.setattr("dialogs.pages.views.dialog.SHOWN_ROWS", 4)
    assert history[0].pk not in menus(Page(html_of(as_alice, dialog)))

    assert "pin" in entries(opened(as_alice, dialog, history[0]))
