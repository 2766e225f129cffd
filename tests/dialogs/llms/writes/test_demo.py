from __future__ import annotations

import pytest
from django.test import Client, override_settings

from dialogs.llms.writes.providers import install_demo, record_limits, retire_demo
from dialogs.models import LLM, Agent, Provider
from dialogs.providers.base import ModelFacts

pytestmark = pytest.mark.django_db


def install(*, port: int = 8091, window: int = 2048) -> Agent:
    with override_settings(DOMINDS_DEMO_CONTEXT=window):
        return install_demo(base_url=f"http://127.0.0.1:{port}", model_id="tiny")


def test_the_demo_agent_says_what_it_is() -> None:
    agent = install()

    assert agent.is_demo
    assert "do not trust" in agent.description


def test_its_card_says_so_in_chinese_too(as_alice: Client) -> None:
    install()
    as_alice.cookies["django_language"] = "zh-hans"

    assert "不要相信它的回答" in as_alice.get("/dialogs/new/").content.decode()


@override_settings(DOMINDS_DEMO_CONTEXT=896)
def test_a_server_that_rounds_the_window_up_leaves_the_demo_with_its_own() -> None:
    llm = install(window=896).llm

    record_limits(llm=llm, facts=ModelFacts(model_id="tiny", context_length=1024))

    assert (llm.context_length, llm.optimal_max_tokens) == (896, 672)


def test_another_port_and_window_move_the_same_rows() -> None:
    install()

    install(port=9000, window=4096)

    llm = LLM.objects.get()
    assert llm.provider.base_url == "http://127.0.0.1:9000"
    assert (llm.context_length, llm.optimal_max_tokens) == (4096, 3072)


def test_a_ceiling_and_instructions_that_an_admin_chose_stay() -> None:
    agent = install()
    LLM.objects.update(optimal_max_tokens=1000)
    Agent.objects.update(instructions="Answer in rhyme.")

    install(window=4096)

    agent.refresh_from_db()
    assert (agent.llm.optimal_max_tokens, agent.instructions) == (1000, "Answer in rhyme.")


def test_a_demo_from_before_there_were_tools_is_offered_none_either() -> None:
    install()
    LLM.objects.update(tool_calling="auto", catalogue_values={})

    assert install().llm.tool_calling == "off"


def test_an_admin_may_offer_tools_to_the_demo() -> None:
    install()
    LLM.objects.update(tool_calling="auto")

    assert install().llm.tool_calling == "auto"


def test_a_retired_demo_cannot_be_chosen_and_comes_back() -> None:
    install()

    retire_demo()
    retired = (Agent.objects.get().enabled, Provider.objects.get().enabled)
    install()

    assert retired == (False, False)
    assert Agent.objects.get().enabled
    assert Provider.objects.get().enabled


def test_a_provider_of_that_name_that_an_admin_made_is_left_alone() -> None:
    mine = Provider.objects.create(name="demo", kind="openai", base_url="https://example.com/v1")

    agent = install()
    retire_demo()

    mine.refresh_from_db()
    assert mine.enabled
    assert mine.base_url == "https://example.com/v1"
    assert agent.llm.provider.name == "embedded-demo"
