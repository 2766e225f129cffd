"""Who is there to talk to when only the environment was configured."""

from __future__ import annotations

import pytest

from dialogs.llms.writes.providers import ensure_agents
from dialogs.models import LLM, Agent, Provider


@pytest.fixture
def hosted(db: object) -> LLM:
    provider = Provider.objects.create(
        name="hosted", kind="openai", base_url="https://llm.example/v1", api_key_env="HOSTED_KEY"
    )
    return LLM.objects.create(provider=provider, model_id="big-1", context_length=128_000)


def test_a_key_in_the_environment_gets_an_agent(hosted: LLM, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTED_KEY", "secret")

    (agent,) = ensure_agents()

    assert (agent.llm, agent.is_demo) == (hosted, False)


def test_without_a_key_there_is_no_agent(hosted: LLM) -> None:
    assert ensure_agents() == []


def test_a_provider_of_the_override_file_needs_no_key(hosted: LLM) -> None:
    Provider.objects.update(origin="file", api_key_env="")

    assert [agent.llm for agent in ensure_agents()] == [hosted]


def test_somebody_elses_agent_is_enough(hosted: LLM, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTED_KEY", "secret")
    Agent.objects.create(name="Mine", slug="mine", llm=hosted)

    assert ensure_agents() == []
