"""Writing providers, LLMs, their limits and the agents made for them."""

from __future__ import annotations

import pytest
from django.conf import LazySettings
from django.test import Client, override_settings

from dialogs.llms.reads import configured, missing_key, providers_ready_by_environment, settings_for
from dialogs.llms.writes.providers import (
    InvalidProvider,
    add_agent,
    add_llm,
    add_provider,
    ensure_agents,
    install_demo,
    record_limits,
    retire_demo,
    set_api_key,
)
from dialogs.models import LLM, Agent, Provider
from dialogs.providers.base import ModelFacts
from health.monitor.levels import Configured

pytestmark = pytest.mark.django_db
KEY = "sk-very-secret"


def facts(window: int | None, **more: int) -> ModelFacts:
    return ModelFacts(model_id="tiny", context_length=window, **more)


@pytest.fixture
def fresh(provider: Provider) -> LLM:
    """An LLM of which nothing is known yet."""
    return LLM.objects.create(provider=provider, model_id="fresh")


# --- Providers and keys --------------------------------------------------------------------------------------------


def test_a_provider_is_added_with_its_key_encrypted(db: None) -> None:
    provider = add_provider(name="local", kind="openai", base_url=" http://127.0.0.1:8080/v1/ ", api_key=KEY)

    provider.refresh_from_db()
    assert provider.base_url == "http://127.0.0.1:8080/v1"
    assert KEY not in provider.api_key_encrypted
    assert settings_for(provider).api_key == KEY


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"base_url": "not a URL"}, "no blanks"),
        ({"base_url": "http://user:pw@host"}, "Leave user name and password out"),
        ({"kind": "telepathy"}, "kind"),
        ({"name": "two words"}, "name"),
        ({"name": ""}, "name"),
        ({"name": "scripted"}, "already exists"),
        ({"api_key": "two words"}, "one word"),
        ({"api_key": "schlüssel"}, "one word"),
    ],
)
def test_a_wrong_field_is_told_and_nothing_is_stored(provider: Provider, wrong: dict[str, str], words: str) -> None:
    right = {"name": "local", "kind": "openai", "base_url": "http://127.0.0.1:8080"}

    with pytest.raises(InvalidProvider, match=words) as caught:
        add_provider(**{**right, **wrong})

    assert Provider.objects.count() == 1
    assert "schlüssel" not in str(caught.value)


def test_without_a_stored_key_the_environment_s_is_used(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    provider.api_key_env = "SOME_KEY"
    assert missing_key(provider) == "no key: SOME_KEY is not set"

    monkeypatch.setenv("SOME_KEY", " from-environment ")
    assert settings_for(provider).api_key == "from-environment"
    assert missing_key(provider) == ""

    set_api_key(provider=provider, key=KEY)
    assert settings_for(provider).api_key == KEY


def test_a_key_that_cannot_be_read_is_a_problem_and_no_crash(provider: Provider) -> None:
    set_api_key(provider=provider, key=KEY)

    with override_settings(SECRET_KEY="another"):
        found = settings_for(provider)

    assert found.api_key == ""
    assert "Set it again" in found.problem


def test_a_hosted_provider_is_ready_once_the_environment_has_its_key(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosted = add_provider(name="hosted", kind="openai", base_url="https://host", api_key_env="SOME_KEY")
    assert providers_ready_by_environment() == []

    monkeypatch.setenv("SOME_KEY", KEY)
    assert providers_ready_by_environment() == [hosted]


# --- LLMs and agents -----------------------------------------------------------------------------------------------


def test_an_llm_is_added_once_and_its_limits_recorded_each_time(provider: Provider) -> None:
    first = add_llm(provider=provider, model_id="tiny", facts=facts(2048))
    second = add_llm(provider=provider, model_id="tiny", facts=facts(4096))

    assert first == second
    second.refresh_from_db()
    assert second.context_length == 4096


def test_a_model_id_that_is_too_long_is_refused(provider: Provider) -> None:
    with pytest.raises(InvalidProvider, match="model_id"):
        add_llm(provider=provider, model_id="x" * 300)


def test_an_agent_is_made_once_for_an_llm_and_a_demo_agent_does_not_count(fresh: LLM) -> None:
    Agent.objects.create(name="Demo", slug="demo", llm=fresh, is_demo=True)

    assert add_agent(llm=fresh) == add_agent(llm=fresh)
    assert set(Agent.objects.values_list("slug", flat=True)) == {"demo", "fresh"}


@pytest.mark.parametrize(
    ("model_id", "slug"),
    [
        ("meta-llama/Llama-3.1:8b", "meta-llama-llama-3-1-8b"),
        ("模型", "agent"),
        ("x" * 200, "x" * 50),
        ("---", "agent"),
    ],
)
def test_an_agent_s_slug_comes_from_the_model_id(provider: Provider, model_id: str, slug: str) -> None:
    llm = add_llm(provider=provider, model_id=model_id)

    assert add_agent(llm=llm).slug == slug


def test_a_taken_slug_gets_a_number(provider: Provider) -> None:
    other = add_provider(name="other", kind="openai", base_url="http://host")

    slugs = [add_agent(llm=add_llm(provider=each, model_id="same")).slug for each in (provider, other)]

    assert slugs == ["same", "same-2"]


# --- Limits --------------------------------------------------------------------------------------------------------


def test_a_window_read_from_the_server_comes_into_force(fresh: LLM) -> None:
    said = record_limits(llm=fresh, facts=facts(200_000, output_length=8192))

    fresh.refresh_from_db()
    assert (fresh.context_length, fresh.context_length_source) == (200_000, "server")
    assert fresh.detected_context_length == 200_000
    assert fresh.output_length == 8192
    assert fresh.limits_read_at is not None
    assert fresh.optimal_max_tokens is None
    assert said == "Context window: 200,000 tokens, read from the server."


@pytest.mark.parametrize(
    ("window", "ceiling"),
    [(2048, 1536), (1001, 750), (111_112, 83_334), (111_113, None), (1, None)],
)
def test_a_small_window_gets_an_explicit_ceiling(fresh: LLM, window: int, ceiling: int | None) -> None:
    record_limits(llm=fresh, facts=facts(window))

    fresh.refresh_from_db()
    assert fresh.optimal_max_tokens == ceiling


@pytest.mark.parametrize(("window", "ceiling"), [(32_768, 24_576), (262_144, None)])
def test_the_ceiling_of_a_small_window_follows_the_next_one(fresh: LLM, window: int, ceiling: int | None) -> None:
    record_limits(llm=fresh, facts=facts(4096))

    record_limits(llm=fresh, facts=facts(window))

    assert fresh.optimal_max_tokens == ceiling


def test_an_explicit_ceiling_is_never_changed(llm: LLM) -> None:
    llm.context_length_source = "file"
    llm.save()

    said = record_limits(llm=llm, facts=facts(2048))

    assert llm.optimal_max_tokens == 500
    assert "ceiling" not in said


def test_an_admin_s_window_stays_and_the_server_s_stands_beside_it(llm: LLM) -> None:
    said = record_limits(llm=llm, facts=facts(4096))

    llm.refresh_from_db()
    assert (llm.context_length, llm.context_length_source) == (1000, "admin")
    assert llm.detected_context_length == 4096
    assert said == "The server says 4,096 tokens; the 1,000 set by an admin stay in force."


def test_a_server_that_says_nothing_changes_nothing(fresh: LLM) -> None:
    record_limits(llm=fresh, facts=facts(8192))
    said = record_limits(llm=fresh, facts=facts(None))

    fresh.refresh_from_db()
    assert fresh.context_length == 8192
    assert fresh.detected_context_length is None
    assert said == "The server does not say how large the context window is."


def test_a_server_s_own_words_are_passed_on(fresh: LLM) -> None:
    assert record_limits(llm=fresh, facts=ModelFacts(model_id="tiny", note="Loading.")) == "Loading."


def test_limits_are_written_over_what_is_in_the_database_now(fresh: LLM) -> None:
    LLM.objects.filter(pk=fresh.pk).update(context_length=5000, context_length_source="admin")

    record_limits(llm=fresh, facts=facts(4096))

    fresh.refresh_from_db()
    assert fresh.context_length == 5000


def test_what_is_configured_decides_the_levels(llm: LLM) -> None:
    llm.caution_remediation_cadence_generations = 3

    assert configured(llm) == Configured(context_length=1000, optimal_max_tokens=500, caution_cadence=3)


def test_a_variable_of_this_machines_own_is_never_sent_to_a_provider(monkeypatch: pytest.MonkeyPatch, db: None) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://user:password@host/name")
    row = Provider.objects.create(name="old", kind="openai", base_url="https://host", api_key_env="DATABASE_URL")

    found = settings_for(row)

    assert found.api_key == ""
    assert "DATABASE_URL is not a variable" in found.problem
    with pytest.raises(InvalidProvider, match="DATABASE_URL is not a variable"):
        add_provider(name="new", kind="openai", base_url="https://host", api_key_env="DATABASE_URL")


def test_an_odd_name_can_be_listed(monkeypatch: pytest.MonkeyPatch, settings: LazySettings, db: None) -> None:
    monkeypatch.setenv("MY_LLM_PASS", "sk-odd")
    settings.DOMINDS_KEY_VARIABLES = frozenset({"MY_LLM_PASS"})

    row = add_provider(name="new", kind="openai", base_url="https://host", api_key_env="MY_LLM_PASS")

    assert settings_for(row).api_key == "sk-odd"


# Who is there to talk to when only the environment was configured.


@pytest.fixture
def hosted(db: object) -> LLM:
    provider = Provider.objects.create(
        name="hosted", kind="openai", base_url="https://llm.example/v1", api_key_env="HOSTED_KEY"
    )
    return LLM.objects.create(provider=provider, model_id="big-1", context_length=128_000)


def test_a_key_in_the_environment_gets_an_agent(hosted: LLM, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ensure_agents() == []
    monkeypatch.setenv("HOSTED_KEY", "secret")

    (agent,) = ensure_agents()

    assert (agent.llm, agent.is_demo) == (hosted, False)


def test_a_provider_of_the_override_file_needs_no_key(hosted: LLM) -> None:
    Provider.objects.update(origin="file", api_key_env="")

    assert [agent.llm for agent in ensure_agents()] == [hosted]


def test_somebody_elses_agent_is_enough(hosted: LLM, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTED_KEY", "secret")
    Agent.objects.create(name="Mine", slug="mine", llm=hosted)

    assert ensure_agents() == []


# The demo that `up` installs.


def install(*, port: int = 8091, window: int = 2048) -> Agent:
    with override_settings(DOMINDS_DEMO_CONTEXT=window):
        return install_demo(base_url=f"http://127.0.0.1:{port}", model_id="tiny")


def test_the_demo_agent_says_what_it_is_and_its_card_so_in_chinese_too(as_alice: Client) -> None:
    agent = install()
    as_alice.cookies["django_language"] = "zh-hans"

    assert agent.is_demo
    assert "do not trust" in agent.description
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


@pytest.mark.parametrize(("installed", "offered"), [({"catalogue_values": {}}, "off"), ({}, "auto")])
def test_a_demo_from_before_there_were_tools_is_offered_none_unless_an_admin_offers_them(
    installed: dict[str, object], offered: str
) -> None:
    install()
    LLM.objects.update(tool_calling="auto", **installed)

    assert install().llm.tool_calling == offered


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
