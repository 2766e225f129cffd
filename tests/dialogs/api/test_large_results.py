"""Tool results in a small window of LM Studio: whole while they fit, and said to be too large where they cannot."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from dialogs.models import LLM
from health.models import ContextEvent
from tests.dialogs.api.conftest import Client, a_tool, assistant, long_history, user
from tests.dialogs.api.test_chores import in_lmstudio
from tests.dialogs.compacting_builders import long_text
from tests.standins.lmstudio import LMStudioStandin
from tests.standins.serving import serving

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]

TOO_LARGE = "This tool result exceeds the model's context limit"
SUGGESTION = "A model with a larger context can read all of it."


@pytest.fixture
def studio(llm: LLM) -> Iterator[LMStudioStandin]:
    standin = LMStudioStandin(context=4096, cut_middle=True)
    with serving(standin.app()) as url:
        in_lmstudio(llm, url)
        yield standin


def calling(*results: str) -> list[dict[str, Any]]:
    """A round of as many calls as there are results."""
    ids = [f"c{number}" for number in range(len(results))]
    calls = [{"id": one, "type": "function", "function": {"name": "logs", "arguments": "{}"}} for one in ids]
    answers = [
        {"role": "tool", "tool_call_id": one, "content": result} for one, result in zip(ids, results, strict=True)
    ]
    return [user("What do the logs say?"), assistant("", tool_calls=calls), *answers]


def sent_results(studio: LMStudioStandin) -> list[str]:
    return [one["content"] for one in studio.asked[-1]["messages"] if one["role"] == "tool"]


def texts(sentences: int) -> str:
    return "\n".join(long_text(number, 10) for number in range(sentences // 10))


async def test_a_result_that_fits_is_sent_as_it_is(client_of_alice: Client, studio: LMStudioStandin) -> None:
    result = texts(70)

    response = await client_of_alice.ask(*long_history(13), *calling(result), tools=[a_tool("logs")])

    assert response.status_code == 200, response.content
    assert sent_results(studio) == [result]
    assert (studio.cuts, studio.sizes[-1] <= 4096) == (0, True)


async def test_a_result_that_cannot_fit_alone_is_shortened_and_says_so(
    client_of_alice: Client, studio: LMStudioStandin
) -> None:
    result = texts(400)

    response = await client_of_alice.ask(*long_history(3), *calling("All is well.", result), tools=[a_tool("logs")])

    assert response.status_code == 200, response.content
    small, short = sent_results(studio)
    assert small == "All is well."
    assert TOO_LARGE in short
    assert SUGGESTION in short
    assert short.startswith(result[:200])
    assert short.endswith(result[-200:])
    assert (studio.cuts, max(studio.sizes) <= 4096) == (0, True)


async def test_json_that_cannot_fit_stays_json(client_of_alice: Client, studio: LMStudioStandin) -> None:
    result = json.dumps([{"number": number, "text": long_text(number)} for number in range(200)])

    await client_of_alice.ask(*calling(result), tools=[a_tool("logs")])

    (short,) = sent_results(studio)
    assert TOO_LARGE in json.loads(short)["note"]
    assert json.loads(short)["result"]


async def test_that_a_result_cannot_fit_is_an_event(client_of_alice: Client, studio: LMStudioStandin) -> None:
    await client_of_alice.ask(*calling(texts(400)), tools=[a_tool("logs")])

    event = await sync_to_async(ContextEvent.objects.get)(code="TOKEN_LIMIT_EXCEEDED")
    assert TOO_LARGE in event.facts["reason"]
    assert event.limit == 4096
