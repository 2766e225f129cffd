"""The clients that people have, from their own packages, at a real `/v1`: each reads its answers as OpenAI's."""

from __future__ import annotations

from typing import Any

import openai
import pytest

from dialogs.api.chunks import COMPACTED, COMPACTING
from tests.clients.client import Client, Wish
from tests.clients.conftest import GUARDED, MODEL, SMALL, Served
from tests.clients.python_clients import OpenAIClient
from tests.dialogs.api.conftest import long_history, user
from tests.dialogs.compacting_builders import RULE, long_text
from tests.dialogs.driver.conftest import calling, said

pytestmark = pytest.mark.stack

# It does not fit beside a history of 12 pairs.
LONG = [f"{word} " for word in long_text(3, sentences=150).split()]
LAST = "and that is all."
# About what is sent then: estimates learn from what is reported, and the next test needs them.
PROMPT_TOKENS = 2200
BROKEN = {"code": "provider_failed", "message": "It went wrong."}


def a_history(request: pytest.FixtureRequest, pairs: int) -> list[dict[str, Any]]:
    """One of its own for every test: what is known already is compacted already."""
    return [user(f"For {request.node.name}."), *long_history(pairs), user("Tell me everything.")]


def contents(request: dict[str, Any]) -> str:
    return "\n".join(message["content"] for message in request["messages"])


def test_an_answer_comes_with_its_usage(client: Client, served: Served) -> None:
    served.play(said(120, "Hi there."))

    answer = client.ask(Wish(model=MODEL, messages=[user("Hello")]))

    assert (answer.text, answer.finish, answer.prompt_tokens, answer.error) == ("Hi there.", "stop", 120, None)


def test_a_tool_runs_in_the_client_and_its_result_goes_on_with_the_same_dialog(client: Client, served: Served) -> None:
    sent = served.play(calling(120, "weather", '{"city":"Ulm"}'), said(150, "It rains."))
    before = int(served.fact("Dialog.objects.count()"))

    answer = client.ask(Wish(model=MODEL, messages=[user("Weather in Ulm?")], results={"weather": "rain"}))

    assert [call.replace(" ", "") for call in answer.calls] == ['weather{"city":"Ulm"}']
    assert answer.text == "It rains."
    assert [(one["role"], one["content"]) for one in sent()[1]["messages"]][::2] == [
        ("user", "Weather in Ulm?"),
        ("tool", "rain"),
    ]
    assert int(served.fact("Dialog.objects.count()")) == before + 1


def test_a_history_above_the_threshold_is_compacted_before_it_is_sent(
    client: Client, served: Served, request: pytest.FixtureRequest
) -> None:
    sent, history = served.play(said(700, "Done.")), a_history(request, 30)

    answer = client.ask(Wish(model=GUARDED, messages=history, stream=True))

    assert len(contents(sent()[0])) < sum(len(message["content"]) for message in history) / 2
    assert RULE in contents(sent()[0])
    assert (answer.text, answer.finish, answer.prompt_tokens, answer.error) == ("Done.", "stop", 700, None)


def test_an_answer_that_fills_the_window_is_one_answer(
    client: Client, served: Served, request: pytest.FixtureRequest
) -> None:
    sent = served.play({"text": LONG, "usage": None}, said(PROMPT_TOKENS, LAST))

    answer = client.ask(Wish(model=SMALL, messages=a_history(request, 10), stream=True))

    begun = answer.text.removesuffix(LAST)
    assert answer.text == begun + LAST
    assert "".join(LONG).startswith(begun)
    assert begun in contents(sent()[1])
    assert (answer.finish, answer.prompt_tokens, answer.error) == ("stop", PROMPT_TOKENS, None)


def test_a_failure_before_the_answer_is_the_clients_own_error(client: Client, served: Served) -> None:
    served.play({"error": BROKEN})

    answer = client.ask(Wish(model=MODEL, messages=[user("Hello")], stream=True))

    assert answer.error
    assert (answer.error["status"], answer.error["code"]) == (502, "provider_failed")


def test_a_failure_in_the_answer_is_told_after_what_had_come(client: Client, served: Served) -> None:
    served.play({"text": ["One, ", "two"], "error": BROKEN})

    answer = client.ask(Wish(model=MODEL, messages=[user("Count")], stream=True))

    assert answer.text == "One, two"
    assert answer.error
    assert answer.error["code"] == "provider_failed"
    assert answer.error["status"] is None


def test_a_client_that_leaves_stops_the_model(client: Client, served: Served) -> None:
    served.play(said(120, [f"{number} " for number in range(1000)], delay=0.05))

    client.ask(Wish(model=MODEL, messages=[user("Count to a thousand")], stream=True, leave_at="3 "))

    newest = "Generation.objects.latest('id')"
    served.stack.wait_until(lambda: served.fact(f"{newest}.status") != "running")
    assert served.fact(f"{newest}.status") == "stopped"
    assert served.fact(f"{newest}.message.content").startswith("0 1 2 3")


def test_notices_come_as_statuses_beside_the_answer(
    openai_client: OpenAIClient, served: Served, request: pytest.FixtureRequest
) -> None:
    served.play(said(700, "Done."))

    answer = openai_client.ask(Wish(model=GUARDED, messages=a_history(request, 30), stream=True))

    begun, ended = answer.statuses
    assert begun == COMPACTING
    assert ended.startswith(f"{COMPACTED} (≈")
    assert (answer.text, answer.thoughts) == ("Done.", "")


@pytest.mark.parametrize("how", ["reasoning", "content", "off"])
def test_notices_come_where_the_client_wants_them(
    openai_client: OpenAIClient, served: Served, request: pytest.FixtureRequest, how: str
) -> None:
    served.play(said(700, "Done."))
    wish = Wish(model=GUARDED, messages=a_history(request, 30), stream=True, headers={"X-Dominds-Notices": how})

    answer = openai_client.ask(wish)

    assert answer.statuses == []
    assert answer.text.endswith("Done.")
    assert [COMPACTING in said for said in (answer.text, answer.thoughts)] == [how == "content", how == "reasoning"]


def test_models_are_listed_and_found_with_their_limits(openai_client: OpenAIClient) -> None:
    with openai_client.open() as client:
        listed = {model.id: model for model in client.models.list()}
        found = client.models.retrieve(MODEL)

    assert listed[MODEL] == found
    # Of a window of 100,000 tokens a tenth is kept for the answer.
    assert [getattr(listed[one], "context_length") for one in (GUARDED, MODEL)] == [3500, 90_000]  # noqa: B009


def test_a_client_whose_base_url_lacks_v1_is_told_what_there_is(served: Served) -> None:
    client = OpenAIClient(served.stack.url, served.key)

    with client.open() as opened, pytest.raises(openai.NotFoundError, match="There are /v1/") as refused:
        opened.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "Hello"}])

    assert refused.value.code == "not_found"


@pytest.mark.parametrize("kept", [0, 2])
def test_a_loop_that_sends_its_newest_messages_leaves_one_dialog(
    openai_client: OpenAIClient, served: Served, kept: int
) -> None:
    sent = served.play(*(said(400, f"Answer {number}, {kept}. {long_text(number, 1)}") for number in range(6)))
    before, history = int(served.fact("Dialog.objects.count()")), list[dict[str, Any]]()

    for number in range(6):
        history.append(user(f"Question {number} of the loop. {long_text(number, 1)}"))
        trimmed = [*history[: min(kept, len(history) - 5)], *history[-5:]] if len(history) > 5 else history
        answer = openai_client.ask(Wish(model=MODEL, messages=[{"role": "system", "content": "Help."}, *trimmed]))
        history.append({"role": "assistant", "content": answer.text})

    assert int(served.fact("Dialog.objects.count()")) == before + 1
    assert int(served.fact("Dialog.objects.order_by('-active_at')[0].messages.count()")) == 12
    assert [one["content"] for one in sent()[-1]["messages"]][1:] == [one["content"] for one in trimmed]
