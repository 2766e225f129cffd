"""What a dialog's page is made of, at a price that does not grow, and the LLMs that it offers."""

from __future__ import annotations

from typing import Any

from dialogs.models import LLM
from dialogs.pages.reads.page import choosable_llms


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
