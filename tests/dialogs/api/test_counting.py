"""Nothing is cut in silence because it was counted too low: pictures, and models whose vocabulary nobody knows."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from dialogs.models import LLM
from health.models import CompactionRun, ContextEvent
from health.tokens.messages import count_messages
from tests.dialogs.api.conftest import Client, a_tool, assistant, long_history, user
from tests.dialogs.api.test_chores import in_lmstudio
from tests.dialogs.compacting_builders import long_text
from tests.standins.lmstudio import LMStudioStandin
from tests.standins.serving import serving

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]

PNG = (
    "data:image/png;base64,"
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
KOREAN = "오늘 오후 {n}번째로 보일러실의 펌프와 밸브를 점검했고 압력계의 수치가 {m}으로 낮다는 것을 발견했습니다. "
LOG = "2031-04-07T12:33:01.{m}Z ERROR [worker-{n}] 0x7ffe3a2b1c40 timeout after 30000ms id=9f86d081884c7d659a2feaa0c5\n"


class Seeing(LMStudioStandin):
    """To its model every picture is so many tokens."""

    picture = 800

    async def _count(self, messages: Any, tools: Any) -> int:
        pictures = sum(part.get("type") == "image_url" for message in messages for part in _parts(message))
        plain = [{**message, "content": _words(message)} for message in messages]
        return await super()._count(plain, tools) + self.picture * pictures

    def _words(self, body: dict[str, Any]) -> list[str]:
        return super()._words({"messages": [{"content": "a picture"}]})


class Foreign(LMStudioStandin):
    """Counts as a model of another name does."""

    like = ""

    async def _count(self, messages: Any, tools: Any) -> int:
        return count_messages([dict(message) for message in messages], self.like, tools)


def _parts(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    return content if isinstance(content, list) else []


def _words(message: dict[str, Any]) -> str:
    return " ".join(part.get("text", "") for part in _parts(message)) or str(message.get("content") or "")


def at(llm: LLM, url: str, model: str = "tiny") -> None:
    """It is served by an LM Studio, which tells its window when it is asked."""
    llm.provider.kind, llm.provider.base_url = "lmstudio", url
    llm.provider.save()
    llm.model_id, llm.context_length, llm.context_length_source, llm.optimal_max_tokens = model, None, "", None
    llm.compaction = "automatic"
    llm.save()


@pytest.mark.parametrize("picture", [256, 800, 1500])
async def test_a_picture_in_every_turn_never_overflows(client_of_alice: Client, llm: LLM, picture: int) -> None:
    standin = Seeing(context=8192, cut_middle=True, words=20)
    standin.picture = picture
    history = [user("My rule: never deploy on a Friday."), assistant("Yes.")]
    with serving(standin.app()) as url:
        await sync_to_async(at)(llm, url)
        for number in range(14):
            seen = {"type": "image_url", "image_url": {"url": PNG}}
            history.append({"role": "user", "content": [{"type": "text", "text": f"Picture {number}?"}, seen]})
            answer = await client_of_alice.ask(*history)
            assert answer.status_code == 200, answer.content
            history.append(assistant(answer.json()["choices"][0]["message"]["content"]))

    assert standin.cuts == 0
    # Cheap pictures are not taken for dear ones once that is known.
    assert standin.largest > 3000
    assert await CompactionRun.objects.aexists() == (picture > 256)


@pytest.mark.parametrize(
    ("model", "like", "line"),
    [("phi-3-mini-4k-instruct", "llama-2", KOREAN), ("zephyr-7b-beta", "mistral-7b-v0.1", LOG)],
)
async def test_the_first_request_to_a_model_of_no_known_family_is_not_cut(
    client_of_alice: Client, llm: LLM, model: str, like: str, line: str
) -> None:
    """By GPT's vocabulary it is just below the threshold, by the model's own above the window."""
    standin = Foreign(context=4096, cut_middle=True, words=20, model=model)
    standin.like = like
    history: list[dict[str, Any]] = [user("My rule: never deploy on a Friday."), assistant("Yes.")]
    number = 0
    while count_messages(history, model) < 0.74 * 4096:
        number += 1
        said = line.format(n=number, m=number * 37 % 991)
        history += [user(said * 2), assistant(said)]
    assert count_messages(history, like) > 4096
    with serving(standin.app()) as url:
        await sync_to_async(at)(llm, url, model)
        client_of_alice.model = f"scripted/{model}"

        answer = await client_of_alice.ask(*history, user("And now?"), max_tokens=64)

    assert (answer.status_code, standin.cuts) == (200, 0)
    assert 0 < standin.largest <= 4096


async def test_equal_requests_to_a_model_whose_window_nobody_has_read_ask_one_pruner(
    client_of_alice: Client, llm: LLM
) -> None:
    standin = LMStudioStandin(context=2600, cut_middle=True, words=20)
    with serving(standin.app()) as url:
        await sync_to_async(at)(llm, url)
        history = [*long_history(30), user("And now?")]

        answers = await asyncio.gather(*(client_of_alice.ask(*history) for _request in range(3)))

    assert [answer.status_code for answer in answers] == [200, 200, 200]
    pruning = [asked for asked in standin.asked if "You prune the history" in asked["messages"][0]["content"]]
    assert (len(pruning), standin.cuts) == (1, 0)


# Tool results in a small window of LM Studio: whole while they fit, and said to be too large where they cannot.


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
