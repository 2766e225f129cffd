"""A client's context is guarded as the browser's is: in time, with notices, and never twice for one history."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from dialogs.compaction.work import config_for
from dialogs.models import LLM, Agent, Dialog, Message
from health.compaction.config import ContextConfig, LlmLimit
from health.compaction.terms.configuration import dump
from health.models import CompactionRun, ContextSettings
from health.services import compact_messages
from tests.dialogs.api.conftest import (
    Client,
    Play,
    a_tool,
    assistant,
    calling,
    long_history,
    said,
    statuses,
    text_of,
    user,
)
from tests.dialogs.compacting_builders import RULE, long_text

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]

Applied = CompactionRun.Status.APPLIED
LONG = 30
# About half of 4,000 tokens, and an answer of more than the other half.
HALF_FULL = [*long_history(11), user("Tell me everything.")]
LONG_ANSWER = [f" {piece}." for piece in long_text(3, sentences=90).removesuffix(".").split(". ")]


def contents(request: dict[str, Any]) -> str:
    return "\n".join(message["content"] for message in request["messages"])


async def test_results_that_tell_of_nul_or_half_a_character_are_compacted_and_sent(
    guarded_client: Client, play: Play
) -> None:
    """A round is told in rows, without JSON's escapes: PostgreSQL stores no NUL, UTF-8 has no half characters."""
    read = await sync_to_async(play)(said(900, "Done."))
    call = {"id": "c1", "type": "function", "function": {"name": "grep", "arguments": '{"for": "\\u0000"}'}}
    found = {"role": "tool", "tool_call_id": "c1", "content": '{"found": "a\\u0000b \\ud83d", "lines": 7}'}
    round_of_tools = [user("What is in it?"), assistant("", tool_calls=[call]), found, assistant("Seven lines.")]

    history = long_history(LONG)

    response = await guarded_client.ask(*history[:-8], *round_of_tools, *history[-8:], user("And now?"))

    assert response.status_code == 200, response.content
    assert (await CompactionRun.objects.aget()).status == Applied
    assert r"found=a\u0000b \ud83d" in contents(read()[0])


def as_the_library(instructions: dict[str, Any], messages: list[dict[str, Any]]) -> str:
    """What `compact_messages` makes of the same messages with the settings of the run, as one text."""
    run = CompactionRun.objects.get()
    stored = run.dialog.messages.order_by("seq")[: len(messages)]
    told = [{"role": "system", "content": instructions["content"]}]
    told += [{**message, "id": str(row.pk)} for message, row in zip(messages, stored, strict=True)]
    outcome = compact_messages(
        told, limit_tokens=run.limit_tokens, chain=run.chain, config=config_for(run), embedder="none"
    )
    return contents({"messages": outcome.messages})


@pytest.mark.parametrize("asked", ["And now?", "What did you say about question 12?"])
async def test_a_history_above_the_threshold_is_compacted_before_it_is_sent_to_what_the_library_chooses(
    guarded_client: Client, play: Play, asked: str
) -> None:
    read = await sync_to_async(play)(said(900, "Done."))
    messages = [*long_history(LONG), user(asked)]
    sentences = {part for message in messages for part in message["content"].split(". ")}

    await guarded_client.ask(*messages)

    (request,) = read()
    sent, chosen = contents(request), await sync_to_async(as_the_library)(request["messages"][0], messages)
    assert {one for one in sentences if one in sent} == {one for one in sentences if one in chosen}
    assert len(sent) < sum(len(message["content"]) for message in messages) / 2
    assert RULE in sent
    assert sent.endswith(asked)
    run = await CompactionRun.objects.aget()
    assert (run.status, run.trigger) == (Applied, "pre_request")


OWN_CHAIN = {"how": "chain", "breaking_strategy": {"chain_order": ["discard_low_rel"]}}


async def of_the_agent() -> None:
    await Agent.objects.aupdate(own_settings=json.dumps(OWN_CHAIN))


async def of_the_llms_type() -> None:
    types = (LlmLimit(type="gpt4", limit=6000, follow_default=True, own=json.dumps(OWN_CHAIN)),)
    await ContextSettings.objects.acreate(pk=1, values=dump(ContextConfig(per_llm=types)))
    await LLM.objects.aupdate(limit_type="gpt4")


@pytest.mark.parametrize("set_up", [of_the_agent, of_the_llms_type])
async def test_an_agents_or_a_types_own_chain_is_what_runs(
    guarded_client: Client, play: Play, set_up: Callable[[], Awaitable[None]]
) -> None:
    await set_up()
    await sync_to_async(play)(said(900, "Done."))

    await guarded_client.ask(*long_history(LONG), user("And now?"))

    run = await CompactionRun.objects.aget()
    assert run.status == Applied
    assert run.chain == ["trim_payloads", "discard_low_rel", "select_passages"]
    assert "discard_low_rel" in [step["phase"] for step in run.steps]


async def test_the_client_is_told_and_the_answer_holds_none_of_it(guarded_client: Client, play: Play) -> None:
    await sync_to_async(play)(said(900, "Done."))

    response = await guarded_client.ask(*long_history(LONG), user("And now?"), stream=True)

    raw = b"".join([part async for part in response.streaming_content]).decode()
    chunks = [json.loads(line.removeprefix("data: ")) for line in raw.split("\n\n") if line.startswith("data: {")]
    (first, begun), (last, done) = statuses(chunks)
    assert (first, begun, done) == ("Compacting conversation history...", False, True)
    assert re.fullmatch(r"Context compacted, continuing\.\.\. \(≈[\d.]+k? → ≈[\d.]+k? tokens\)", last)
    assert text_of(chunks) == "Done."
    # Every client sees it in the bytes, while it waits.
    assert raw.index(": compacting the conversation\n\n") < raw.index("Done.")


AI_SDK = "ai/6.0.1 ai-sdk/openai-compatible/2.0.1 runtime/node.js/22"


@pytest.mark.parametrize(
    ("headers", "place"),
    [
        ({"X-Dominds-Notices": "reasoning"}, "reasoning_content"),
        ({"X-Dominds-Notices": "content"}, "content"),
        ({"X-Dominds-Notices": "off"}, ""),
        ({"user-agent": AI_SDK}, "reasoning_content"),
    ],
    ids=["reasoning", "content", "off", "the-ai-sdk-shows-thoughts"],
)
async def test_notices_come_where_the_client_wants_them(
    guarded_client: Client, play: Play, headers: dict[str, str], place: str
) -> None:
    await sync_to_async(play)(said(900, "Done."))

    chunks = await guarded_client.stream(*long_history(LONG), user("And now?"), headers=headers)

    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    told = [key for delta in deltas for key, value in delta.items() if "Compacting conversation" in str(value)]
    assert told == ([place] if place else [])
    assert statuses(chunks) == []
    assert place == "content" or text_of(chunks) == "Done."


async def test_a_notice_that_comes_back_as_content_is_taken_out_again(guarded_client: Client, play: Play) -> None:
    read = await sync_to_async(play)(said(900, "Done."), said(950, "Fine."))
    history = [*long_history(LONG), user("And now?")]
    headers = {"X-Dominds-Notices": "content"}

    answered = text_of(await guarded_client.stream(*history, headers=headers))
    await guarded_client.ask(*history, assistant(answered), user("Thanks"), headers=headers)

    assert answered.startswith("> Compacting conversation history...\n\n> Context compacted, continuing...")
    assert "Compacting conversation" not in contents(read()[1])
    assert await Dialog.objects.acount() == 1
    assert await CompactionRun.objects.acount() == 1


async def test_the_same_history_and_a_longer_one_go_on_from_the_view_that_was_made(
    guarded_client: Client, play: Play
) -> None:
    read = await sync_to_async(play)(said(900, "Done."), said(900, "Done."), said(950, "Fine."))
    history = [*long_history(LONG), user("And now?")]

    await guarded_client.ask(*history)
    await guarded_client.ask(*history)
    await guarded_client.ask(*history, assistant("Done."), user("Thanks"))

    before, same, after = (one["messages"] for one in read())
    assert (same, after[: len(before)]) == (before, before)
    assert [one["content"] for one in after[len(before) :]] == ["Done.", "Thanks"]
    assert await CompactionRun.objects.acount() == 1


@pytest.mark.parametrize("delay", [0.0, 0.4], ids=["the-first-at-rest-again", "the-first-still-answering"])
async def test_two_requests_at_once_share_one_compaction(guarded_client: Client, play: Play, delay: float) -> None:
    read = await sync_to_async(play)(said(900, ["Do", "ne."], delay=delay))
    history = [*long_history(LONG), user("And now?")]

    first, second = await asyncio.gather(guarded_client.ask(*history), guarded_client.ask(*history))

    assert first.json()["choices"] == second.json()["choices"]
    assert contents(read()[0]) == contents(read()[1])
    runs = [run async for run in CompactionRun.objects.all()]
    assert {(len(run.removed), len(run.coverage)) for run in runs} == {(len(runs[0].removed), len(runs[0].coverage))}
    assert [run.steps for run in runs] == [runs[0].steps] * len(runs)


@pytest.mark.parametrize("how", ["event", "reasoning", "content"])
async def test_an_answer_that_fills_the_window_is_one_stream_for_the_client_and_known_again_as_one(
    small_client: Client, play: Play, how: str
) -> None:
    read = await sync_to_async(play)(
        {"text": LONG_ANSWER, "usage": None}, said(700, "and that is all."), said(720, "Yes.")
    )
    headers = {"X-Dominds-Notices": how}

    chunks = await small_client.stream(*HALF_FULL, headers=headers, stream_options={"include_usage": True})
    await small_client.ask(*HALF_FULL, assistant(text_of(chunks)), user("Is it?"), headers=headers)

    partial = await Message.objects.aget(cut_short=True)
    if how == "content":
        # The notice stands apart from the words around it.
        before, after = text_of(chunks).split("> Compacting conversation history...")
        assert before == f"{partial.content}\n\n"
        assert re.search(r"tokens\)\n\n and that is all\.$", after)
    else:
        assert text_of(chunks) == f"{partial.content} and that is all."
        assert len(statuses(chunks)) == (2 if how == "event" else 0)
    assert chunks[-1]["usage"]["prompt_tokens"] == 700
    finishes = [choice["finish_reason"] for chunk in chunks for choice in chunk["choices"]]
    assert [reason for reason in finishes if reason] == ["stop"]
    assert await Dialog.objects.acount() == 1
    assert await CompactionRun.objects.filter(trigger="stream").acount() == 1
    assert contents(read()[2]).endswith(". and that is all.\nIs it?")
    assert "Compacting conversation" not in contents(read()[2])


@pytest.mark.parametrize("how", ["event", "content"])
async def test_an_answer_that_does_not_end_is_ended_with_both_numbers(
    small_client: Client, play: Play, how: str
) -> None:
    await sync_to_async(play)({"text": LONG_ANSWER * 4, "usage": None})

    chunks = await small_client.stream(*HALF_FULL, headers={"X-Dominds-Notices": how})

    last = statuses(chunks)[-1][0] if how == "event" else text_of(chunks).rsplit("\n\n> ", 1)[1].strip()
    finishes = [choice["finish_reason"] for chunk in chunks for choice in chunk["choices"]]
    assert re.fullmatch(r"The answer was ended: the context is full\. \(≈[\d,]+ of 4,000 tokens\)", last)
    assert [reason for reason in finishes if reason] == ["length"]


async def test_thoughts_without_end_are_told_as_an_error(small_client: Client, play: Play) -> None:
    await sync_to_async(play)({"reasoning": LONG_ANSWER * 4, "text": "Never said."})

    response = await small_client.ask(*HALF_FULL)

    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (400, "context_length_exceeded")
    assert "of 4,000 tokens" in error["message"]


async def test_a_tools_result_that_would_overflow_is_sent_whole_after_a_compaction(
    guarded_client: Client, play: Play
) -> None:
    read = await sync_to_async(play)(calling(900, "weather"), said(950, "It rains."))
    tools, history = [a_tool("weather")], [*long_history(13), user("Weather?")]
    called = (await guarded_client.ask(*history, tools=tools)).json()["choices"][0]["message"]
    result = long_text(9, sentences=40)

    await guarded_client.ask(*history, called, {"role": "tool", "tool_call_id": "c1", "content": result}, tools=tools)

    run = await CompactionRun.objects.alatest("id")
    assert (run.status, run.trigger) == (Applied, "tool_result")
    assert [one["role"] for one in read()[1]["messages"]][-2:] == ["assistant", "tool"]
    assert read()[1]["messages"][-1]["content"] == result


@pytest.mark.usefixtures("patient")
async def test_what_cannot_fit_is_refused_with_a_status_and_nobody_is_asked(guarded_client: Client, play: Play) -> None:
    read = await sync_to_async(play)(said(900))

    response = await guarded_client.ask(
        {"role": "system", "content": long_text(1, sentences=200)}, user("Hello"), stream=True
    )

    error = response.json()["error"]
    assert (response.status_code, error["code"], error["param"]) == (400, "context_compaction_failed", "messages")
    assert read() == []
