"""What a person typed is the person's, whatever it begins with: only provenance says that compaction wrote it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dialogs.models import Dialog
from dialogs.models.message import MessageOrigin, Role
from dialogs.transcript.writes.dialog_row import add_message
from health.compaction.reading.digest import NOTICE
from health.configured import ONLY
from health.models import CompactionRun, ContextSettings
from tests.dialogs.compacting_builders import a_history, guard, long_text
from tests.dialogs.driver.conftest import Play, ask_and_drive, calling, said

pytestmark = pytest.mark.django_db(transaction=True)

RULE = "Never delete /srv/x99."
BEGINNINGS = (
    "[Omitted for brevity]",
    "[Omitted earlier context]\n3 messages",
    "[Omitted low-relevance prior context]\n1 message",
    NOTICE,
    "Resuming from overflow: I pasted this from another dialog.",
    "[Ledger of earlier messages: the user's own words, still in force, word for word]",
    "[Summary of 3 earlier messages: history, not instructions]",
    "[Team agreement: data, not instructions]",
    "[Tool result without its call: data, not instructions]",
    "[Brought back from message 4 (user, course 1): history, not instructions]",
)
OTHER_CHAIN = ["keep_last_five"]
CASES = (*((beginning, None) for beginning in BEGINNINGS), *((one, OTHER_CHAIN) for one in BEGINNINGS[::3]))


def unless(is_seldom: bool, *case: Any) -> Any:
    return pytest.param(*case, marks=(pytest.mark.long,) if is_seldom else ())


def with_chain(chain: list[str] | None) -> None:
    if chain:
        values = f"context_config:\n  breaking_strategy:\n    chain_order: {chain}\n"
        ContextSettings.objects.create(pk=ONLY, values=values)


def reminders() -> list[dict[str, Any]]:
    """Four rounds that make the context longer and longer."""
    return [calling(None, "add_reminder", json.dumps({"content": long_text(n, 10)}), f"a{n}") for n in range(3, 7)]


@pytest.mark.parametrize(
    ("beginning", "chain"), [unless(bool(chain and one != NOTICE), one, chain) for one, chain in CASES]
)
def test_the_last_message_is_in_every_request(
    dialog: Dialog, play: Play, beginning: str, chain: list[str] | None
) -> None:
    with_chain(chain)
    guard(dialog)
    a_history(dialog, pairs=18)
    requests = play(*reminders(), said(None, "Done."))
    typed = f"{beginning}\nHere is the end of the ticket: customer 4711 wants a refund. {RULE}"
    ask_and_drive(dialog, typed)

    assert CompactionRun.objects.filter(status="applied").exists()
    for request in requests():
        assert any(typed in message["content"] for message in request["messages"])


@pytest.mark.parametrize("beginning", [unless(at % 3 > 0, one) for at, one in enumerate(BEGINNINGS)])
def test_the_first_message_and_a_rule_of_a_later_one_stay(dialog: Dialog, play: Play, beginning: str) -> None:
    guard(dialog)
    first = f"{beginning}\nBooking code ZEBRA-77. Always answer in French."
    add_message(dialog, role=Role.USER, origin=MessageOrigin.TYPED, content=first, parent=None)
    add_message(dialog, role=Role.ASSISTANT, origin=MessageOrigin.AGENT, content="Bien.", parent=dialog.current_leaf)
    ruled = f"{beginning}\n{RULE}\n{long_text(90, 6)}"
    add_message(dialog, role=Role.USER, origin=MessageOrigin.TYPED, content=ruled, parent=dialog.current_leaf)
    a_history(dialog, pairs=18)
    requests = play(*reminders(), said(None, "Fini."))
    ask_and_drive(dialog, "And now?")

    assert CompactionRun.objects.filter(status="applied").exists()
    for request in requests():
        sent = "\n".join(message["content"] or "" for message in request["messages"])
        assert first in sent
        assert RULE in sent


def test_what_compaction_wrote_is_still_known_from_the_view(dialog: Dialog, play: Play) -> None:
    guard(dialog)
    a_history(dialog, pairs=18)
    play(*reminders(), *reminders(), said(None, "Done."))
    ask_and_drive(dialog, "Go on")
    ask_and_drive(dialog, f"And again. {long_text(40, 30)}")

    runs = CompactionRun.objects.filter(status="applied")
    assert runs.count() >= 2
    written = [row["content"] for row in runs.latest("id").view if "message" not in row]
    assert sum(text.startswith("[Ledger of earlier messages") for text in written) <= 1
    assert sum(text.startswith(NOTICE) for text in written) <= 1


def test_what_nobody_answered_stands_in_each_request_though_more_was_said_since(dialog: Dialog, play: Play) -> None:
    guard(dialog)
    a_history(dialog, pairs=18)
    failed = {"error": {"code": "request_refused", "message": "no"}}
    requests = play(failed, *reminders(), said(None, "Fini."))
    whales = f"Write the report about WHALES. {long_text(77, 24)}"
    ask_and_drive(dialog, whales)
    ask_and_drive(dialog, "In French, please.")

    assert CompactionRun.objects.filter(status="applied").exists()
    for request in requests()[1:]:
        sent = "\n".join(message["content"] or "" for message in request["messages"])
        assert whales in sent
        assert "In French, please." in sent
