"""What clients can ask for as a model: agents and LLMs that are switched on, each once, under one id."""

from __future__ import annotations

from dialogs.api.reads.api_keys import listed_llms, offered_agents, offered_llms, offered_models
from dialogs.models import LLM, Agent, Provider


def test_agents_come_before_llms(agent: Agent) -> None:
    assert offered_models() == ["helper", "scripted/tiny"]


def test_what_is_switched_off_is_not_offered(agent: Agent) -> None:
    Agent.objects.update(enabled=False)
    assert offered_models() == ["scripted/tiny"]

    LLM.objects.update(enabled=False)
    assert offered_models() == []


def test_the_agent_that_stands_for_an_llm_is_not_an_agent_to_clients(agent: Agent, llm: LLM) -> None:
    Agent.objects.create(name="tiny", slug="direct-tiny", llm=llm, is_direct=True)

    assert [one.slug for one in offered_agents()] == ["helper"]
    assert [one.slug for one in offered_llms()] == ["scripted/tiny"]


def test_a_service_of_the_catalogue_needs_its_key_though_its_variable_was_taken_away(llm: LLM) -> None:
    here = Provider.objects.get()
    Provider.objects.update(catalogue_values={"api_key_env": "A_KEY_OF_OURS", "base_url": here.base_url})
    assert listed_llms() == []

    Provider.objects.update(base_url="http://127.0.0.1:9/our-own-proxy")
    assert [one.slug for one in listed_llms()] == ["scripted/tiny"]
