"""The list of dialogs: shelves, search, what a row says, and how a new dialog begins."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

from dialogs.models import LLM, Agent, Dialog
from dialogs.pages.views.lists import STEP, sidebar
from dialogs.turns.writes.messages import post_message
from health.models import HealthReading
from tests.builders import an_answer
from tests.dialogs.conftest import Maker
from tests.dialogs.pages.views.pages import HTMX, page


@pytest.mark.parametrize(
    ("url", "title"),
    [
        ("/", "At hand"),
        ("/?shelf=archived", "Put away"),
        ("/?shelf=trash", "Thrown away"),
        # Nonsense in the address is the default, not an error.
        ("/?shelf=attic&shown=-1&rename=x", "At hand"),
    ],
)
def test_each_shelf_shows_its_own_dialogs(as_alice: Client, a_dialog: Maker, url: str, title: str) -> None:
    titles = {"At hand", "Put away", "Thrown away"}
    a_dialog("At hand")
    a_dialog("Put away", archived=True)
    a_dialog("Thrown away", trashed=True)

    text = page(as_alice, url).text

    assert {one for one in titles if one in text} == {title}


@pytest.mark.parametrize(
    ("url", "invitation"),
    [
        ("/", "Begin a dialog"),
        ("/?shelf=archived", "Nothing is archived"),
        ("/?shelf=trash", "for 30 days"),
        ("/?q=nowhere", "matches “nowhere”"),
    ],
)
def test_an_empty_shelf_says_what_it_is_for(as_alice: Client, url: str, invitation: str) -> None:
    assert invitation in page(as_alice, url).text


def test_search_stays_on_its_shelf(as_alice: Client, a_dialog: Maker) -> None:
    a_dialog("Orchard now")
    a_dialog("Orchard before", archived=True)

    text = page(as_alice, "/?shelf=archived&q=orchard").text

    assert "Orchard before" in text
    assert "Orchard now" not in text


def test_a_dialog_that_was_searched_shows_where_the_words_were_said_and_leads_there(
    as_alice: Client, dialog: Dialog
) -> None:
    said = post_message(dialog=dialog, content="Never spray the orchard against moths.")
    dialog.refresh_from_db()
    an_answer(dialog, "I never do.")

    found = page(as_alice, "/?q=moths+orchard")

    assert "Never spray the orchard against moths." in found.text
    assert f"/dialogs/{dialog.pk}/messages/{said.pk}/" in found.links()


def test_htmx_gets_the_list_alone_and_caches_are_told(as_alice: Client, a_dialog: Maker) -> None:
    a_dialog("At hand")

    response = as_alice.get("/?q=hand&rename=x", headers=HTMX)

    assert response.content.lstrip().startswith(b'<section id="dialogs"')
    assert b"<html" not in response.content
    assert response["HX-Replace-Url"] == "/?q=hand"
    assert "HX-Request" in response["Vary"]
    assert "no-store" in response["Cache-Control"]


def test_nobody_sees_the_dialogs_of_another(as_bob: Client, a_dialog: Maker) -> None:
    a_dialog("A secret of Alice")

    assert "secret" not in page(as_bob, "/").text
    assert "secret" not in page(as_bob, "/?q=secret").text.replace("“secret”", "")


def test_a_row_names_agent_llm_and_level_and_marks_a_busy_dialog(as_alice: Client, dialog: Dialog) -> None:
    assert "Untitled dialog" in page(as_alice, "/").text
    post_message(dialog=dialog, content="Hello")
    assert "answering" in page(as_alice, "/").text
    answer = an_answer(dialog)
    HealthReading.objects.create(generation=answer.generation, level="critical", context_window=1000)

    text = page(as_alice, "/").text

    assert all(words in text for words in ("Helper", "tiny", "Context: critical"))
    assert "answering" not in text


@pytest.mark.parametrize("title", ["token-of-the-person", "quoted-address-of-the-list", "a \"<b>\" & 'c'", "名字"])
def test_the_menu_of_a_dialog_has_its_name_its_address_and_the_lists(
    as_alice: Client, a_dialog: Maker, title: str
) -> None:
    dialog, other = a_dialog(title=title), a_dialog(title="Other")

    found = page(as_alice, f"/?q=&agent={dialog.agent_id}")

    labels = {attrs["id"]: attrs["aria-label"] for tag, attrs in found.tags if tag == "summary" and "id" in attrs}
    assert labels[f"menu-of-{dialog.pk}"] == f"Actions for {title}"
    assert labels[f"menu-of-{other.pk}"] == "Actions for Other"
    assert f"/?agent={dialog.agent_id}&rename={dialog.pk}" in found.links()
    assert f"/dialogs/{dialog.pk}/trash/?next=%2F%3Fagent%3D{dialog.agent_id}" in found.links()
    assert f"/dialogs/{other.pk}/export.md" in found.links()
    assert all(attrs["value"] for _tag, attrs in found.tags if attrs.get("name") in ("csrfmiddlewaretoken", "next"))


def test_a_long_list_is_loaded_step_by_step(as_alice: Client, a_dialog: Maker) -> None:
    for number in range(STEP + 5):
        a_dialog(f"Dialog no. {number};")

    first = page(as_alice, "/")
    more = next(link for link in first.links() if "shown=" in link)
    second = page(as_alice, more)

    assert first.text.count("Dialog no.") == STEP
    assert second.text.count("Dialog no.") == STEP + 5
    assert "Load more" not in second.text


def test_the_sidebar_holds_active_dialogs_only(alice: User, a_dialog: Maker) -> None:
    a_dialog("At hand")
    a_dialog("Put away", archived=True)

    assert [item.dialog.title for item in sidebar(alice)] == ["At hand"]


def test_one_agent_needs_no_choice(as_alice: Client, agent: Agent) -> None:
    response = as_alice.post("/dialogs/new/")

    dialog = Dialog.objects.get()
    assert response["Location"] == f"/dialogs/{dialog.pk}/"
    assert dialog.agent == agent


def test_among_several_agents_a_person_chooses(as_alice: Client, agent: Agent, llm: LLM) -> None:
    Agent.objects.create(name="Toy", slug="toy", description="Plays.", llm=llm, is_demo=True)

    assert as_alice.post("/dialogs/new/")["Location"] == "/dialogs/new/"
    text = page(as_alice, "/dialogs/new/").text
    as_alice.post("/dialogs/new/", {"agent": "toy"})

    assert "Plays." in text
    assert "often wrong" in text
    assert Dialog.objects.get().agent.slug == "toy"


def test_a_card_names_agent_model_server_and_window_each_once(as_alice: Client, agent: Agent, llm: LLM) -> None:
    LLM.objects.update(context_length=8192)
    Agent.objects.create(name=llm.model_id, slug="same", llm=llm)

    card, same = (str(one) for one in as_alice.get("/dialogs/new/").content.decode().split('<button class="card')[1:])

    for name in (agent.name, llm.model_id, llm.provider.name, "8,192"):
        assert card.count(f">{name}<") + card.count(f"window {name}") == 1
    assert same.count(f">{llm.model_id}<") == 1


def test_an_empty_page_offers_every_way_in_to_who_may_go_it(as_alice: Client, as_sam: Client, sam: User) -> None:
    sam.is_superuser = True
    sam.save()
    assert "/connect/" not in page(as_alice, "/").links()

    found = page(as_sam, "/")

    assert "/connect/" in found.links()
    assert "New dialog" in found.text


def test_an_agent_that_is_switched_off_cannot_be_chosen(as_alice: Client, agent: Agent) -> None:
    Agent.objects.update(enabled=False)

    response = as_alice.post("/dialogs/new/", {"agent": "helper"}, follow=True)

    assert "not there any more" in response.content.decode()
    assert not Dialog.objects.exists()


def test_without_an_agent_a_person_is_told_what_to_do_and_staff_led_to_the_admin(
    as_alice: Client, as_sam: Client
) -> None:
    assert "provider add" in page(as_alice, "/dialogs/new/").text
    assert "/admin/dialogs/agent/add/" in page(as_sam, "/dialogs/new/").links()
