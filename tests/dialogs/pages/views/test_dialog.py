"""A dialog's page: who sees it, what stands in it, and that nothing that was said can act in it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from dialogs.models import LLM, Dialog, Generation, QueuedMessage
from dialogs.models.message import MessageOrigin, Role
from dialogs.transcript.writes.dialog_row import add_message
from dialogs.turns.writes.messages import edit_message, post_message
from tests.builders import a_generation, an_answer
from tests.dialogs.pages.views.pages import Page, page

HOSTILE = """<script>alert(1)</script> <img src=x onerror=alert(1)> [click](javascript:alert(1))

![pixel](https://example.org/pixel.png) <iframe src="https://example.org"></iframe>

<a href="javascript:alert(1)" style="color:red" onclick="alert(1)">here</a>"""


def ask(dialog: Dialog, content: str = "Hello") -> Any:
    message = post_message(dialog=dialog, content=content)
    dialog.refresh_from_db()
    return message


def shown(client: Client, dialog: Dialog, query: str = "") -> Page:
    return page(client, f"/dialogs/{dialog.pk}/{query}")


def ids(found: Page) -> set[str]:
    return {str(attrs["id"]) for _tag, attrs in found.tags if "id" in attrs}


def test_an_empty_dialog_invites_and_a_demo_agent_says_that_it_is_one(as_alice: Client, dialog: Dialog) -> None:
    dialog.agent.is_demo = True
    dialog.agent.save()

    found = shown(as_alice, dialog)

    assert "Ask something to begin." in found.text
    assert "fluent and often wrong" in found.text
    assert {"rows", "turn", "meter", "health-panel", "transcript", "composer", "dialog-title"} <= ids(found)


def test_a_page_speaks_the_readers_language_and_is_never_kept_by_the_browser(as_alice: Client, dialog: Dialog) -> None:
    response = as_alice.get(f"/dialogs/{dialog.pk}/", headers={"Accept-Language": "zh-Hans"})

    assert 'lang="zh-hans"' in response.content.decode()
    assert "lang=zh-hans" in response.content.decode()
    assert "no-store" in response.headers["Cache-Control"]


def test_the_socket_is_told_language_and_version(as_alice: Client, dialog: Dialog) -> None:
    ask(dialog)

    sockets = [attrs["ws-connect"] for _tag, attrs in shown(as_alice, dialog, "?all=1").tags if "ws-connect" in attrs]

    assert sockets == [f"/ws/dialogs/{dialog.pk}/?lang=en&version={dialog.version}&all=1"]


def test_what_was_said_cannot_act_and_a_persons_text_is_shown_as_typed(as_alice: Client, dialog: Dialog) -> None:
    typed = f"**not bold**\n  <b>indented</b> مرحبا 👩‍👩‍👧 过敏 {HOSTILE}"
    ask(dialog, typed)
    an_answer(dialog, HOSTILE)
    answer = Dialog.objects.get(pk=dialog.pk).current_leaf
    assert answer is not None
    answer.parts = {"reasoning": HOSTILE}
    answer.save()

    response = as_alice.get(f"/dialogs/{dialog.pk}/")
    found = Page(response.content.decode())

    assert found.offences == []
    assert typed in found.text
    assert "<b>indented" not in response.content.decode()
    assert not {"img", "iframe", "object", "embed"} & {tag for tag, _attrs in found.tags}
    assert "default-src 'self'" in response["Content-Security-Policy"]
    assert "unsafe" not in response["Content-Security-Policy"]


def test_an_answer_is_markdown_with_its_figures_and_unreported_tokens_are_unknown_and_not_zero(
    as_alice: Client, dialog: Dialog
) -> None:
    ask(dialog)
    began = timezone.now()
    an_answer(dialog, "**bold**", prompt_tokens=1310, completion_tokens=140)
    Generation.objects.update(started_at=began, finished_at=began + timedelta(seconds=2.5))
    an_answer(dialog, "Hi.")

    found = shown(as_alice, dialog)

    assert "strong" in {tag for tag, _attrs in found.tags}
    assert "scripted/tiny · 1,310 prompt + 140 completion tokens · 2.5 s" in found.text
    assert "tokens unknown" in found.text


def test_a_stopped_answer_says_so(as_alice: Client, dialog: Dialog) -> None:
    ask(dialog)
    answer = an_answer(dialog, "Half a")
    answer.cut_short = True
    answer.save()

    assert "stopped" in shown(as_alice, dialog).text


def test_an_interrupted_try_keeps_its_text(as_alice: Client, dialog: Dialog) -> None:
    ask(dialog)
    a_generation(dialog, status="interrupted", partial_text="Half a sentence")
    an_answer(dialog, "A whole sentence.")

    found = shown(as_alice, dialog)

    assert found.text.index("Half a sentence") < found.text.index("A whole sentence.")
    assert "interrupted" in found.text


def test_the_live_answer_is_shown_block_by_block(as_alice: Client, dialog: Dialog) -> None:
    ask(dialog)
    a_generation(dialog, partial_text="One.\n\nTwo.", partial_reasoning="Hmm.")
    Dialog.objects.update(lease_until=timezone.now() + timedelta(seconds=30))

    found = shown(as_alice, dialog)

    assert {"live", "live-blocks", "live-block-0", "live-block-1", "live-reasoning", "stop"} <= ids(found)
    assert "Answering…" in found.text


def test_a_turn_that_nobody_takes_says_so_and_a_waiting_message_can_be_taken_back(
    as_alice: Client, dialog: Dialog
) -> None:
    ask(dialog)
    assert "No worker has taken this turn yet. Your message is stored" in shown(as_alice, dialog).text
    ask(dialog, "And another thing")
    queued = QueuedMessage.objects.get(dialog=dialog)

    found = shown(as_alice, dialog)

    assert "waits its turn" in found.text
    assert f"queued-{queued.pk}" in ids(found)


def test_a_next_try_is_announced_with_its_reason(as_alice: Client, dialog: Dialog) -> None:
    ask(dialog)
    soon = timezone.now() + timedelta(seconds=30)
    a_generation(dialog, status="failed", error_code="rate_limited", retry_at=soon)

    found = shown(as_alice, dialog)

    assert "The provider asks us to slow down." in found.text
    assert [attrs["data-until"] for _tag, attrs in found.tags if "data-until" in attrs]


def test_versions_of_a_message_can_be_leafed_through(as_alice: Client, dialog: Dialog) -> None:
    first = ask(dialog, "First")
    an_answer(dialog)
    dialog.refresh_from_db()
    edit_message(dialog=dialog, message=first, content="Second")

    found = shown(as_alice, dialog)

    assert "2/2" in found.text
    assert f"/dialogs/{dialog.pk}/messages/{first.pk}/show/" in {attrs.get("action") for _tag, attrs in found.tags}


def test_earlier_messages_are_a_click_away(as_alice: Client, dialog: Dialog) -> None:
    leaf = None
    for number in range(103):
        leaf = add_message(dialog, role=Role.USER, origin=MessageOrigin.TYPED, content=f"Number {number};", parent=leaf)
    dialog.save()

    part, whole = shown(as_alice, dialog), shown(as_alice, dialog, "?all=1")

    assert "Show 3 earlier messages" in part.text
    assert "?all=1" in "".join(part.links())
    assert "Number 2;" not in part.text
    assert "Number 2;" in whole.text


def test_every_id_stands_once(as_alice: Client, dialog: Dialog) -> None:
    ask(dialog)
    an_answer(dialog)
    ask(dialog, "More")
    a_generation(dialog, partial_text="One.\n\nTwo.")
    ask(dialog, "Waiting")

    found = [attrs["id"] for _tag, attrs in shown(as_alice, dialog).tags if "id" in attrs]

    assert len(found) == len(set(found))


def test_a_longer_dialog_costs_no_more_queries(as_alice: Client, dialog: Dialog) -> None:
    counts = []
    for number in range(8):
        ask(dialog, f"Question {number}")
        an_answer(dialog)
        dialog.refresh_from_db()
        with CaptureQueriesContext(connection) as queries:
            shown(as_alice, dialog)
        counts.append(len(queries))

    assert len(set(counts)) == 1, counts


def test_llms_that_cannot_answer_are_not_offered(as_alice: Client, dialog: Dialog) -> None:
    LLM.objects.create(provider=dialog.llm.provider, model_id="large", context_length=128_000)
    LLM.objects.create(provider=dialog.llm.provider, model_id="retired", enabled=False)

    text = shown(as_alice, dialog).text

    assert "scripted/large (128k)" in text
    assert "retired" not in text


def test_the_model_is_changed_at_the_top(as_alice: Client, dialog: Dialog) -> None:
    assert "Change the LLM" not in str(shown(as_alice, dialog).tags)
    other = LLM.objects.create(provider=dialog.llm.provider, model_id="other", context_length=8192)

    html = as_alice.get(f"/dialogs/{dialog.pk}/").content.decode()
    top = html[html.index('class="dialog-who"') : html.index('class="menu dialog-menu"')]

    assert f'action="/dialogs/{dialog.pk}/llm/"' in top
    assert f'<option value="{other.pk}">' in top
    assert html.count(f'action="/dialogs/{dialog.pk}/llm/"') == 1


def test_its_menu_renames_and_archives_it(as_alice: Client, dialog: Dialog) -> None:
    found = shown(as_alice, dialog)
    assert "Archive this dialog" in found.text
    assert f"/dialogs/{dialog.pk}/?rename=1" in found.links()

    assert "open" in {attrs.get("id"): attrs for _tag, attrs in shown(as_alice, dialog, "?rename=1").tags}["title-edit"]
    as_alice.post(f"/dialogs/{dialog.pk}/archive/", {"next": "/"})

    assert "Move to active" in shown(as_alice, dialog).text
