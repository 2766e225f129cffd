"""What the first answer would wait for is loaded beforehand, as far as somebody may ask for it."""

from __future__ import annotations

import time
from typing import Any

import pytest

from dialogs.api.writes.api_keys import create_key
from dialogs.llms import preload
from dialogs.models import LLM

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kinds of providers whose client was loaded."""
    kinds: list[str] = []
    monkeypatch.setattr(preload, "load", kinds.append)
    monkeypatch.setattr(preload, "AFTER_SECONDS", 0.0)
    monkeypatch.setattr(preload.gc, "freeze", lambda: None)
    return kinds


def until(found: list[str], *, most_seconds: float = 5.0) -> list[str]:
    end = time.monotonic() + most_seconds
    while not found and time.monotonic() < end:
        time.sleep(0.01)
    return found


@pytest.mark.usefixtures("agent")
def test_a_worker_loads_the_clients_of_the_servers_that_agents_use(llm: LLM, loaded: list[str]) -> None:
    LLM.objects.create(provider=llm.provider, model_id="nobody-uses-it", context_length=1000)

    preload.preload_soon()

    assert until(loaded) == [llm.provider.kind]


@pytest.mark.usefixtures("agent")
def test_a_web_process_loads_them_once_there_is_an_api_key(alice: Any, llm: LLM, loaded: list[str]) -> None:
    preload.preload_soon(for_clients=True)
    assert until(loaded, most_seconds=0.3) == []

    create_key(owner=alice, name="laptop")
    preload.preload_soon(for_clients=True)

    assert until(loaded) == [llm.provider.kind]


@pytest.mark.usefixtures("agent")
def test_a_client_that_cannot_be_loaded_ends_nothing(
    loaded: list[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(kind: str) -> None:
        loaded.append(kind)
        raise ImportError("half of it is missing")

    monkeypatch.setattr(preload, "load", broken)

    preload.preload_soon()
    until(loaded)
    until(caplog.messages)

    assert "loaded with the first answer" in caplog.text
