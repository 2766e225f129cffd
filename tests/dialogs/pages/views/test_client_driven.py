"""The page of a dialog that a client drives: everything is shown, nothing is written."""

from __future__ import annotations

import base64

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import translation

from dialogs.api.writes.api_keys import create_key, revoke_key
from dialogs.models import LLM, ApiKey, Dialog, Message
from tests.client_dialogs import A_TOOL, PNG, answered, ask, assistant, image, picture, result, user
from tests.dialogs.pages.views.pages import Page, page


@pytest.fixture
def key(alice: User) -> ApiKey:
    return create_key(owner=alice, name="laptop")[0]


@pytest.fixture
def driven(key: ApiKey, llm: LLM) -> Dialog:
    """A question that a client asked, with its answer."""
    dialog = ask(key, llm, {"role": "system", "content": "Be brief."}, user("Hello"), tools=(A_TOOL,), chat="My chat")
    answered(dialog)
    return dialog


def shown(client: Client, dialog: Dialog) -> Page:
    return page(client, f"/dialogs/{dialog.pk}/")


def row(found: Page, message: Message) -> dict[str, str | None]:
    return next(attributes for _tag, attributes in found.tags if attributes.get("id") == f"message-{message.pk}")


def test_there_is_no_way_to_write_and_what_only_changes_what_the_model_sees_stays(
    as_alice: Client, driven: Dialog
) -> None:
    """The bar says which client drives it."""
    found, here = shown(as_alice, driven), f"/dialogs/{driven.pk}"

    ids = {attributes.get("id") for _tag, attributes in found.tags}
    assert {"client-bar", "meter", "health-panel", "budget", "compaction-card"} <= ids
    assert not ids & {"composer", "notebook", "autonomous"}
    actions = {str(attributes.get("action")) for tag, attributes in found.tags if tag == "form"}
    for writing in ("send/", "retry/", "llm/", "language/", "run/", "reminders/", "taskdoc/", "edit/"):
        assert not any(f"{here}/{writing}" in action for action in actions), writing
    links = found.links()
    assert {f"{here}/compaction/", f"{here}/archive-of-context/", f"{here}/export.json"} <= set(links)
    assert not any(link.startswith((f"{here}/course/", f"{here}/run/")) for link in links)
    assert found.offences == []

    bar = "A client with the key “laptop” drives this conversation. Messages are written in the client."
    for fact in (bar, "scripted/tiny", "1 tool", "My chat", "Last request"):
        assert fact in found.text
    assert "A client drives this conversation: Dominds adds no messages." in found.text
    assert "automatic" not in found.text.lower()


def test_the_bar_speaks_chinese(as_alice: Client, driven: Dialog) -> None:
    with translation.override("zh-hans"):
        text = page(as_alice, f"/dialogs/{driven.pk}/", headers={"accept-language": "zh-hans"}).text

    assert "客户端" in text
    assert "drives" not in text


def test_a_revoked_key_is_said_and_the_dialog_is_still_there_when_it_is_gone(
    as_alice: Client, driven: Dialog, key: ApiKey
) -> None:
    assert "key revoked" not in shown(as_alice, driven).text

    revoke_key(key=key)
    assert "key revoked" in shown(as_alice, driven).text

    key.delete()
    assert "A client drives this conversation. Messages are written in the client." in shown(as_alice, driven).text


def test_whoever_speaks_is_named(as_alice: Client, key: ApiKey, llm: LLM) -> None:
    dialog = ask(
        key,
        llm,
        user("Hello", name="Bea"),
        assistant("Brought along."),
        {"role": "system", "content": "It is Monday."},
        user("And now?"),
    )
    answered(dialog, "Ours.")

    found = shown(as_alice, dialog)

    said = [row(found, message)["aria-label"] for message in dialog.messages.order_by("seq")]
    assert said == ["User Bea", "Assistant", "System message", "User", dialog.agent.name]


def test_a_call_is_the_clients_until_its_result_stands_with_it_and_one_without_a_call_stands_by_itself(
    as_alice: Client, key: ApiKey, llm: LLM
) -> None:
    waiting = shown(as_alice, ask(key, llm, user("Weather?"), assistant(None, ("c1", "weather")))).text
    assert "made by the client" in waiting
    assert "The client has not sent a result." in waiting
    dialog = ask(
        key, llm, user("Weather?"), assistant(None, ("c1", "weather")), result("c1", "Rain."), result("c9", "Snow.")
    )

    found = shown(as_alice, dialog)

    rain, snow = dialog.messages.filter(role="tool").order_by("seq")
    ids = {attributes.get("id") for _tag, attributes in found.tags}
    assert f"message-{rain.pk}" not in ids
    assert row(found, snow)["aria-label"] == "Result of a tool"
    assert "Rain." in found.text


@pytest.mark.parametrize("bytes_more", [0, 300])
def test_an_attached_image_is_shown_from_here_to_its_owner_alone(
    as_alice: Client, as_bob: Client, client: Client, key: ApiKey, llm: LLM, driven: Dialog, bytes_more: int
) -> None:
    dialog = ask(key, llm, user([{"type": "text", "text": "What is it?"}, picture(bytes_more=bytes_more)]))
    answered(dialog)

    found = shown(as_alice, dialog)

    source = next(str(attributes["src"]) for tag, attributes in found.tags if tag == "img")
    response = as_alice.get(source)
    assert response["Content-Type"] == "image/png"
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response.content.startswith(base64.b64decode(PNG)[:60])
    assert "image/png" in found.text
    assert (as_bob.get(source).status_code, client.get(source).status_code) == (404, 302)
    assert as_alice.get(source.replace(str(dialog.pk), str(driven.pk))).status_code == 404


@pytest.mark.parametrize(
    "part",
    [
        image("https://elsewhere.example/cat.png"),
        picture("image/svg+xml", bytes_more=300),
        picture("text/html", bytes_more=300),
        image("data:,plain"),
        {"type": "file", "file": {"filename": "plan.pdf", "file_data": "data:application/pdf;base64,AAAA"}},
        {"type": "input_audio", "input_audio": {"data": "A" * 300, "format": "wav"}},
        {"type": "input_audio", "input_audio": {"data": {"deep": [1]}, "format": 5}},
        {"type": "file", "file": {}},
    ],
    ids=["elsewhere", "svg", "html", "text", "file", "sound", "odd", "nothing"],
)
def test_what_is_no_picture_of_ours_is_only_named(
    as_alice: Client, key: ApiKey, llm: LLM, part: dict[str, object]
) -> None:
    dialog = ask(key, llm, user([part]))
    message = dialog.messages.get()

    found = shown(as_alice, dialog)

    assert not [tag for tag, _attributes in found.tags if tag == "img"]
    assert any(attributes.get("class") == "attachment" for _tag, attributes in found.tags)
    assert as_alice.get(f"/dialogs/{dialog.pk}/messages/{message.pk}/attachments/0/").status_code == 404


def test_without_javascript_the_refusal_stands_on_the_page(as_alice: Client, driven: Dialog) -> None:
    response = as_alice.post(f"/dialogs/{driven.pk}/send/", {"content": "Hi"})

    assert response.status_code == 422
    assert "Dominds adds nothing to it. Write in the client." in Page(response.content.decode()).text


def test_lists_say_so_in_words_too(as_alice: Client, driven: Dialog, dialog: Dialog) -> None:
    for address in ("/", f"/dialogs/{dialog.pk}/"):
        assert page(as_alice, address).text.count("A client drives it through the API") == 1

    shelf = page(as_alice, "/?shelf=clients")

    assert f"/dialogs/{driven.pk}/" in shelf.links()
    assert f"/dialogs/{dialog.pk}/" not in shelf.links()


def test_the_shelf_of_a_person_without_clients_leads_to_the_keys(as_alice: Client, dialog: Dialog) -> None:
    assert "/settings/keys/" in page(as_alice, "/?shelf=clients").links()


def test_its_task_is_read_out_of_its_messages(as_alice: Client, key: ApiKey, llm: LLM) -> None:
    calls = [{"id": f"c{at}", "type": "function", "function": {"name": "look", "arguments": "{}"}} for at in (1, 2)]
    said = (user("Migrate the database"), {"role": "assistant", "content": "", "tool_calls": calls})
    dialog = ask(key, llm, *said, result("c1", "Error: no such table"), result("c2", "done"), tools=(A_TOOL,))

    found = as_alice.get(f"/dialogs/{dialog.pk}/context/snapshot").json()

    assert (found["goal"], found["currentPhase"]) == ("Migrate the database", "executing")
    assert found["completedActions"] == ["look"]
    assert found["keyObservations"] == ["look failed: Error: no such table"]
    assert as_alice.get(f"/dialogs/{dialog.pk}/context/stats").json()["hasSnapshot"]


def test_what_the_client_leaves_out_stays_on_the_page_and_is_said_to_be_seen_no_more(
    as_alice: Client, key: ApiKey, llm: LLM
) -> None:
    history = [user("The oldest question.")]
    for number in range(3):
        dialog = ask(key, llm, *history)
        history += [assistant(f"Answer {number}: {'the valve is open. ' * 4}"), user(f"Question {number}.")]
        answered(dialog, str(history[-2]["content"]))

    dialog = ask(key, llm, *history[-3:])
    answered(dialog)

    found, left_out = shown(as_alice, dialog), page(as_alice, f"/dialogs/{dialog.pk}/archive-of-context/")
    assert Dialog.objects.count() == 1
    assert [text in found.text for text in ("The oldest question.", "Question 0.", "Question 2.")] == [True] * 3
    assert found.text.count("no longer seen") == 4
    assert "Left out by the client" in left_out.text
    assert "The oldest question." in left_out.text
    assert "Question 2." not in left_out.text
