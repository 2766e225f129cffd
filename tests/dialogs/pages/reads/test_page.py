"""What a dialog's page is made of, at a price that does not grow, and the LLMs that it offers."""

from __future__ import annotations

from typing import Any

import pytest

from dialogs.llms.writes.providers import set_api_key
from dialogs.models import LLM, Dialog
from dialogs.pages.reads.page import choosable_llms, dialog_parts
from dialogs.turns.writes.messages import post_message
from tests.builders import a_reading


def exchanged(dialog: Dialog, prompt_tokens: int) -> None:
    post_message(dialog=dialog, content="Hello")
    a_reading(dialog, prompt_tokens)
    dialog.refresh_from_db()


def test_the_parts_are_read_under_the_names_of_the_templates(dialog: Dialog) -> None:
    exchanged(dialog, 250)

    parts = dialog_parts(dialog)

    assert parts["dialog"] == dialog
    assert [row.kind for row in parts["transcript"].rows] == ["message", "message"]
    assert (parts["meter"].prompt_tokens, parts["status"].busy) == (250, False)
    assert [point.prompt_tokens for point in parts["history"]] == [250]


def test_the_parts_of_a_new_dialog_are_empty(dialog: Dialog) -> None:
    parts = dialog_parts(dialog)

    assert (parts["transcript"].rows, parts["history"], parts["meter"].stale) == ((), (), "none_yet")


@pytest.mark.parametrize(("limit", "rows", "hidden"), [(2, 2, 2), (4, 4, 0), (None, 4, 0)])
def test_the_newest_messages_are_shown_and_the_others_counted(
    dialog: Dialog, limit: int | None, rows: int, hidden: int
) -> None:
    exchanged(dialog, 100)
    exchanged(dialog, 200)

    transcript = dialog_parts(dialog, limit=limit)["transcript"]

    assert (len(transcript.rows), transcript.hidden) == (rows, hidden)


def test_only_llms_that_can_answer_are_offered(llm: LLM) -> None:
    LLM.objects.create(provider=llm.provider, model_id="off", enabled=False)
    assert choosable_llms() == [llm]

    llm.provider.enabled = False
    llm.provider.save()

    assert choosable_llms() == []


def test_a_provider_without_its_key_offers_nothing(llm: LLM, monkeypatch: Any) -> None:
    monkeypatch.delenv("SCRIPTED_KEY", raising=False)
    llm.provider.api_key_env = "SCRIPTED_KEY"
    llm.provider.save()
    assert choosable_llms() == []

    monkeypatch.setenv("SCRIPTED_KEY", "k")
    assert choosable_llms() == [llm]


def test_a_stored_key_is_a_key(llm: LLM, monkeypatch: Any) -> None:
    monkeypatch.delenv("SCRIPTED_KEY", raising=False)
    llm.provider.api_key_env = "SCRIPTED_KEY"
    llm.provider.save()

    set_api_key(provider=llm.provider, key="k")

    assert choosable_llms() == [llm]
