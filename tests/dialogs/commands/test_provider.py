"""`manage.py provider`, against a real server on loopback."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from dialogs.llms.guard import cuts_silently
from dialogs.llms.writes.providers import add_llm, add_provider
from dialogs.models import LLM, Agent, Provider
from tests.dialogs.providers.upstream import Reply, Upstream, as_json, upstream
from tests.standins.lmstudio import LMStudioStandin
from tests.standins.ollama import OllamaStandin
from tests.standins.serving import serving

DEAD = "http://127.0.0.1:9"


@pytest.fixture
def server(db: Any) -> Iterator[Upstream]:
    """The upstream on a loop of its own: a command runs a loop too."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    opened = upstream()
    told = asyncio.run_coroutine_threadsafe(opened.__aenter__(), loop).result(5)
    yield told
    asyncio.run_coroutine_threadsafe(opened.__aexit__(None, None, None), loop).result(5)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(5)


def run(*words: str) -> str:
    out = StringIO()
    call_command(*words, stdout=out)
    return out.getvalue()


def models(*names: str, **more: Any) -> Any:
    return as_json({"data": [{"id": name, **more} for name in names]})


def test_adding_a_server_adds_its_models_with_their_windows_and_agents(server: Upstream) -> None:
    server.on("/v1/models", models("tiny", "small", max_model_len=8192))

    said = run("provider", "add", "openai", server.url, "--name", "local")

    assert said.splitlines()[0].startswith("Added provider local. The provider answers")
    assert "  tiny: window 8,192 from the server, 819 kept for the answer; compaction from ≈5,900 tokens on" in said
    assert "Agent: tiny" in said
    assert LLM.objects.get(model_id="tiny").optimal_max_tokens == 6144
    assert set(Agent.objects.values_list("slug", flat=True)) == {"tiny", "small"}


def test_lm_studio_is_added_with_what_is_loaded(db: Any) -> None:
    with serving(LMStudioStandin(context=8192).app()) as url:
        said = run("provider", "add", "lmstudio", url, "--name", "studio")

    assert "  tiny: window 8,192 as loaded in LM Studio, 819 kept for the answer; compaction from ≈5,700 tokens" in said
    assert LLM.objects.get().provider.kind == "lmstudio"


def test_an_ollama_that_is_added_as_something_else_is_recognised(db: Any) -> None:
    with serving(OllamaStandin().app()) as url:
        added = run("provider", "add", "openai", f"{url}/v1", "--name", "local")
        checked = run("provider", "check")

    command = f"    manage.py provider add ollama {url} --name ollama"
    for said in (added, checked):
        assert "! This is an Ollama. Behind OpenAI's API" in said
        assert command in said.splitlines()


def test_what_a_server_said_that_it_is_counts_more_than_its_port(server: Upstream) -> None:
    with serving(OllamaStandin().app()) as url:
        run("provider", "add", "openai", f"{url}/v1", "--name", "hidden")
    server.on("/v1/models", models("tiny", max_model_len=8192))
    run("provider", "add", "openai", server.url, "--name", "other")
    hidden, other = Provider.objects.get(name="hidden"), Provider.objects.get(name="other")

    assert cuts_silently(LLM.objects.filter(provider=hidden)[0])
    assert not cuts_silently(LLM.objects.get(provider=other))
    # Elsewhere it is another server, and only the port can be known until somebody asks.
    hidden.base_url, other.base_url = "http://127.0.0.1:8000/v1", "http://127.0.0.1:11434/v1"
    assert not cuts_silently(LLM(provider=hidden))
    assert cuts_silently(LLM(provider=other))
    other.asked_at_url = other.base_url  # somebody asked there, and it is none
    assert not cuts_silently(LLM(provider=other))


def test_an_ollama_is_known_by_its_words_where_its_version_is_not_told(server: Upstream) -> None:
    server.on("/v1/models", models("tiny"))
    server.on("/", Reply(content_type="text/plain", pieces=(b"Ollama is running",)))

    assert "This is an Ollama." in run("provider", "add", "openai", server.url, "--name", "local")


def test_another_server_is_not_taken_for_an_ollama(server: Upstream) -> None:
    """Open WebUI has the same path, and tells more there."""
    server.on("/v1/models", models("tiny", max_model_len=8192))
    server.on("/api/version", as_json({"version": "0.6.5", "deployment_id": ""}))

    assert "Ollama" not in run("provider", "add", "openai", server.url, "--name", "local")


def test_only_named_models_are_added(server: Upstream, capsys: pytest.CaptureFixture[str]) -> None:
    server.on("/v1/models", models("tiny", "small"))

    run("provider", "add", "openai", server.url, "--name", "local", "--model", "tiny", "--model", "new", "--no-agent")

    assert list(LLM.objects.values_list("model_id", flat=True)) == ["new", "tiny"]
    assert not Agent.objects.exists()


def test_a_hub_of_hundreds_is_not_added_whole(server: Upstream) -> None:
    server.on("/v1/models", models(*(f"m{number}" for number in range(51))))

    run("provider", "add", "openai", server.url, "--name", "hub")

    assert Provider.objects.filter(name="hub").exists()
    assert not LLM.objects.exists()


def test_a_server_that_is_down_is_added_and_said_so(db: None) -> None:
    said = run("provider", "add", "openai", DEAD, "--name", "later", "--model", "tiny", "--key-env", "LATER_KEY")

    assert "Added provider later, but it does not answer now: http://127.0.0.1:9" in said
    assert "  tiny: its window is unknown: it is learned from the first refusal; until then" in said
    assert Provider.objects.get().api_key_env == "LATER_KEY"
    assert Agent.objects.get().llm.model_id == "tiny"


def test_adding_prints_json_for_scripts(server: Upstream) -> None:
    server.on("/v1/models", models("tiny", context_length=8192))

    told = json.loads(run("provider", "add", "openai", server.url, "--name", "local", "--json"))

    assert told["name"] == "local"
    assert told["answers"] is True
    assert told["agents"] == ["tiny"]
    assert told["models"][0]["context_length"] == 8192
    assert "lines" not in told


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("openai", "not a URL", "--name", "x"), "no blanks"),
        (("openai", DEAD, "--name", "two words"), "name"),
        (("openai", DEAD, "--name", "scripted"), "already exists"),
        (("telepathy", DEAD, "--name", "x"), "invalid choice"),
        (("openai", DEAD), "--name"),
    ],
)
def test_a_mistake_is_one_clear_line(provider: Provider, words: tuple[str, ...], problem: str) -> None:
    with pytest.raises(CommandError, match=problem):
        run("provider", "add", *words)

    assert Provider.objects.count() == 1


def test_checking_records_the_windows_and_tells_a_model_that_the_server_does_not_know(server: Upstream) -> None:
    local = add_provider(name="local", kind="openai", base_url=server.url)
    add_llm(provider=local, model_id="tiny")
    add_llm(provider=local, model_id="gone")
    server.on("/v1/models", models("tiny", max_model_len=4096))

    said = run("provider", "check")

    assert "  tiny: window 4,096 from the server, 409 kept for the answer; compaction from ≈2,900 tokens on" in said
    assert "✓ local: The provider answers" in said
    assert "  tiny: Context window: 4,096 tokens, read from the server." in said
    assert LLM.objects.get(model_id="tiny").context_length == 4096
    assert "  gone: The server does not list a model called 'gone'." in run("provider", "check", "local")


def test_checking_fails_when_one_does_not_answer(server: Upstream) -> None:
    add_provider(name="up", kind="openai", base_url=server.url)
    add_provider(name="down", kind="openai", base_url=DEAD)
    server.on("/v1/models", models())

    out = StringIO()
    with pytest.raises(CommandError, match=r"These do not answer: down\."):
        call_command("provider", "check", "--json", stdout=out)

    assert {one["name"]: one["state"] for one in json.loads(out.getvalue())["providers"]} == {
        "down": "failed",
        "up": "ok",
    }


def test_a_service_without_its_key_is_not_asked(db: None) -> None:
    add_provider(name="hosted", kind="openai", base_url=DEAD, api_key_env="NEVER_SET_KEY")

    assert run("provider", "check") == "- hosted: no key: NEVER_SET_KEY is not set\n"


def test_listing_shows_services_models_and_windows(llm: LLM) -> None:
    add_provider(name="hosted", kind="openai", base_url=DEAD, api_key_env="NEVER_SET_KEY")

    said = run("provider", "list")
    told = json.loads(run("provider", "list", "--json"))

    assert "scripted  scripted  script.json\n  tiny: window 1,000 set by an admin, 100 kept for the answer;" in said
    assert "hosted  openai  http://127.0.0.1:9  (no key: NEVER_SET_KEY is not set)" in said
    assert [provider["name"] for provider in told["providers"]] == ["hosted", "scripted"]
    assert told["providers"][1]["models"][0]["optimal_max_tokens"] == 500


def test_nothing_to_show_is_said(db: None) -> None:
    assert run("provider", "list") == "There is no provider yet.\n"
    assert run("provider", "check") == "There is no provider to check.\n"
    with pytest.raises(CommandError, match="no provider called 'nobody'"):
        run("provider", "check", "nobody")
