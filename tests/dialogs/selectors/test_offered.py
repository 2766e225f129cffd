"""What clients can ask for as a model: agents and LLMs that are switched on, each once, under one id."""

from __future__ import annotations

from dialogs.models import LLM, Agent, Provider
from dialogs.selectors.offered import offered_agents, offered_llms, offered_models


def test_agents_come_before_llms(agent: Agent) -> None:
    assert offered_models() == ["helper", "scripted/tiny"]


def test_what_is_switched_off_is_not_offered(agent: Agent) -> None:
    Agent.objects.update(enabled=False)
    assert offered_models() == ["scripted/tiny"]

    LLM.objects.update(enabled=False)
    assert offered_models() == []


def test_a_provider_that_is_off_takes_all_with_it(agent: Agent) -> None:
    Provider.objects.update(enabled=False)

    assert offered_models() == []


def test_the_agent_that_stands_for_an_llm_is_not_an_agent_to_clients(agent: Agent, llm: LLM) -> None:
    Agent.objects.create(name="tiny", slug="direct-tiny", llm=llm, is_direct=True)

    assert [one.slug for one in offered_agents()] == ["helper"]
    assert [one.slug for one in offered_llms()] == ["scripted/tiny"]
