"""Servers that count tokens: what they are asked, and what is made of each answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import httpx2
import pytest

from dialogs.providers.base import ProviderSettings
from dialogs.providers.registry import KINDS, load
from dialogs.providers.tokenizing import CannotCount
from tests.dialogs.providers.upstream import Asked, Reply, Upstream, as_html, as_json, as_stream, data

PATH = "/tokenize"


def vllm(asked: Asked) -> Reply:
    if "prompt" not in asked.json:
        return as_json({"error": {"message": "prompt: field required", "code": 400}}, status=400)
    tokens = asked.json["prompt"].split()
    return as_json({"count": len(tokens), "max_model_len": 8192, "tokens": [1] * len(tokens), "token_strs": None})


def llamacpp(asked: Asked) -> Reply:
    return as_json({"tokens": [7] * len(asked.json.get("content", "").split())})


async def counted(
    server: Upstream, kind: str, texts: Sequence[str], *, seconds: float = 5.0, base: str = ""
) -> list[int | None]:
    settings = ProviderSettings(name="upstream", kind=kind, base_url=base or server.url, api_key="sk-secret")
    counts: Any = load(kind)
    return await asyncio.to_thread(counts.count_tokens, settings, texts, "small", seconds=seconds)


@pytest.mark.parametrize(("kind", "reply"), [("openai", vllm), ("openai", llamacpp), ("llamacpp", llamacpp)])
@pytest.mark.parametrize("written", ["", "/v1", "/v1/"])
async def test_each_text_is_counted_alone_at_the_servers_root(
    server: Upstream, kind: str, reply: Any, written: str
) -> None:
    server.answer(PATH, reply)

    assert await counted(server, kind, ["one two", "", "one two three four"], base=server.url + written) == [2, 0, 4]
    assert {asked.path for asked in server.asked} == {PATH}
    assert all(asked.headers["authorization"] == "Bearer sk-secret" for asked in server.asked)
    assert all(asked.json["model"] == "small" for asked in server.asked)


async def test_one_connection_is_enough_and_the_longest_text_comes_first(server: Upstream) -> None:
    server.answer(PATH, llamacpp)

    await counted(server, "llamacpp", ["one", "one two three", "one two"])

    assert server.connections == 1
    assert [asked.json["content"] for asked in server.asked] == ["one two three", "one two", "one"]


@pytest.mark.parametrize("kind", ["openai", "llamacpp"])
@pytest.mark.parametrize(
    "reply",
    [
        as_json({"error": {"message": "no such path"}}, status=404),
        as_json({"error": "Unexpected endpoint or method. (POST /tokenize)"}),
        as_json({"count": "many", "tokens": "none"}),
        as_json([]),
        as_html(),
        # Who answers everything with an answer, or with more than the numbers of a short text can be.
        as_stream([data({"choices": [{"delta": {"content": "one"}}]})], ending="hang"),
        as_json({"tokens": [1] * 100_000}),
    ],
)
async def test_a_server_that_does_not_count_is_found_out(server: Upstream, kind: str, reply: Reply) -> None:
    server.on(PATH, reply)

    with pytest.raises(CannotCount):
        await counted(server, kind, ["one", "two"])


@pytest.mark.parametrize(
    ("replies", "counts"),
    [
        ([as_json({"tokens": [1, 2]}), Reply(pieces=(b"{}",), delay=30.0)], [2, None]),
        ([Reply(pieces=(b" ",) * 100, delay=0.1)], [None, None]),
    ],
    ids=["one-that-is-silent", "one-that-sends-drops"],
)
async def test_a_slow_server_is_waited_for_no_longer_than_that(
    server: Upstream, replies: list[Reply], counts: list[int | None]
) -> None:
    server.on(PATH, *replies)

    begun = asyncio.get_running_loop().time()
    assert await counted(server, "llamacpp", ["the longer one", "short"], seconds=0.4) == counts
    assert asyncio.get_running_loop().time() - begun < 3


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_a_busy_server_is_not_asked_on(server: Upstream, status: int) -> None:
    server.on(PATH, as_json({"error": {"message": "Loading model"}}, status=status))

    assert await counted(server, "llamacpp", ["one", "two"]) == [None, None]
    assert len(server.asked) == 1


async def test_nobody_there_is_an_error_of_the_http_library() -> None:
    with pytest.raises(httpx2.HTTPError):
        await counted(Upstream(), "llamacpp", ["one"], base="http://127.0.0.1:9")


@pytest.mark.parametrize(("kind", "base"), [("lmstudio", "http://127.0.0.1:9"), ("openai", "https://api.openai.com")])
async def test_who_is_known_not_to_count_is_not_asked(kind: str, base: str) -> None:
    with pytest.raises(CannotCount):
        await counted(Upstream(), kind, ["one"], base=base)


def test_kinds_that_may_count_can_and_those_without_openais_protocol_cannot() -> None:
    offering = {kind for kind in KINDS if hasattr(load(kind), "count_tokens")}

    assert {kind for kind, known in KINDS.items() if known.may_count} <= offering
    assert offering.isdisjoint({"ollama", "anthropic", "scripted"})


async def test_what_is_sent_is_valid_json_whatever_the_text(server: Upstream) -> None:
    server.answer(PATH, lambda asked: as_json({"tokens": list(json.loads(asked.body)["content"])}))

    assert await counted(server, "llamacpp", ['say "hi"\n\0', "你好", "\ud83d"]) == [10, 2, 1]
