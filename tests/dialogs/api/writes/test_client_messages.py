"""What a client brings along: each result beside the call that it answers, however many there are."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from dialogs.api.writes.api_keys import create_key
from dialogs.models import LLM, Agent, ApiKey, ToolCall
from tests.client_dialogs import ask, assistant, result, user


@pytest.fixture
def key(alice: User) -> ApiKey:
    return create_key(owner=alice, name="laptop")[0]


def rounds(count: int, call_id: str) -> list[dict[str, object]]:
    said = [user("Go on.")]
    for number in range(count):
        name = call_id.format(number)
        said += [assistant(f"Round {number}", (name, "weather")), result(name, f"rain {number}")]
    return said


@pytest.mark.parametrize("call_id", ["c{}", "again"], ids=["ids-of-their-own", "one-id-for-all"])
def test_each_result_stands_beside_its_call(key: ApiKey, agent: Agent, llm: LLM, call_id: str) -> None:
    ask(key, llm, *rounds(12, call_id), agent=agent)

    calls = ToolCall.objects.select_related("message", "result_message").order_by("message__seq")
    found = [(call.message.content, call.result_message.content) for call in calls if call.result_message]
    assert found == [(f"Round {number}", f"rain {number}") for number in range(12)]
    assert {call.status for call in calls} == {ToolCall.Status.DONE}


def test_a_result_stands_beside_the_newest_call_before_it(key: ApiKey, agent: Agent, llm: LLM) -> None:
    said = [user("Go on."), assistant("First", ("c", "weather")), assistant("Second", ("c", "weather"))]

    ask(key, llm, *said, result("c", "rain"), assistant("Third", ("c", "weather")), agent=agent)

    (call,) = ToolCall.objects.select_related("message").exclude(result_message=None)
    assert call.message.content == "Second"


def test_many_results_cost_hardly_more_queries_than_few(key: ApiKey, agent: Agent, llm: LLM) -> None:
    """A dialog that is looked through for each of them takes a minute where it is long."""
    counts = []
    for number in (2, 60):
        with CaptureQueriesContext(
            connection,
        ) as asked:
            ask(key, llm, *rounds(number, f"{number}-{{}}"), agent=agent)
        counts.append(len(asked))

    few, many = counts
    # Rows are inserted in portions, and a long history is looked up in two, and as the end of a longer one.
    assert many <= few + 5
