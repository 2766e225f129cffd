"""What use teaches about a window that nobody tells, as a client and a person see it: shown, doubted, forgotten.

The official client, `/v1` over a socket, a server added by `provider add`, and nothing configured.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from io import StringIO
from typing import Any, ClassVar

import openai
import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from django.utils import timezone
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from dialogs.models import LLM, Dialog, LlmBounds
from tests.dialogs.pages.views.pages import page
from tests.overflow.conftest import Build
from tests.overflow.house import WAYS, Caller, House, long_answers
from tests.overflow.talk import Talk, prose
from tests.standins.compatible import CompatibleStandin, Fate, Lists, Overlong

WINDOW = 4_096
TALK = Talk(WINDOW, turns=12, windows=1.8)


@pytest.fixture
def panel(client: Client, alice: User) -> Any:
    """What the panel of the client's dialog says, on one line; Alice is of the staff."""
    User.objects.filter(pk=alice.pk).update(is_staff=True)
    client.force_login(alice)
    return lambda: " ".join(page(client, f"/dialogs/{Dialog.objects.get().pk}/budget/").text.split())


def grown(build: Build, **ways: Any) -> tuple[House, Caller]:
    """A conversation longer than the window, each turn of it answered."""
    home = build(window=WINDOW, reply=long_answers(TALK.chars), **ways)
    caller = home.caller()
    go_on(caller, 1, TALK.turns)
    return home, caller


def go_on(caller: Caller, first: int, last: int) -> None:
    for number in range(first, last + 1):
        assert caller.say(TALK.turn(number), stream=False)


def listed(caller: Caller) -> Mapping[str, Any]:
    """What `/v1/models` says of the model."""
    found: Mapping[str, Any] = caller.client.models.retrieve(caller.model).model_dump()
    return found


def days_pass() -> None:
    then = timezone.now() - timedelta(days=2)
    LlmBounds.objects.update(accepted_at=then, refused_at=then, cut_at=then)


def test_a_window_named_by_a_refusal_is_shown_with_date_and_words_and_can_be_forgotten(
    build: Build, panel: Any, client: Client
) -> None:
    home, caller = grown(build)
    assert len(home.standin.refusals) == 1
    assert listed(caller)["dominds"] == {"context_length_is": "kept_to", "window": WINDOW}

    said = panel()
    assert "window 4,096 learned from a refusal, 409 kept for the answer; compaction from ≈" in said
    assert f"Named by a refusal 4,096{timezone.now():%Y-%m-%d}" in said
    assert "The server said: HTTP 400: This model's maximum context length is 4096 tokens" in said
    client.post(f"/dialogs/{Dialog.objects.get().pk}/budget/forget-window/")

    assert "its window is unknown" in panel()
    assert listed(caller)["dominds"] == {"context_length_is": "unknown", "window": None}


def test_without_a_number_a_bound_is_kept_to_and_the_level_stays_unknown(
    build: Build, panel: Any, client: Client
) -> None:
    _home, caller = grown(build, names=False)

    said = panel()
    assert "its window is unknown: by what it read and refused, ≈" in said
    assert "Smallest request refused ≈" in said
    assert "Largest prompt read" in said
    assert listed(caller)["dominds"] == {"context_length_is": "kept_to", "window": None}
    health = client.get(f"/dialogs/{Dialog.objects.get().pk}/context.json").json()["health"]
    assert (health["level"], health["context_window"]) == ("unknown", None)


def test_a_bound_is_doubted_after_a_day(build: Build, panel: Any) -> None:
    """The server may have been started again with a larger window."""
    home, caller = grown(build, names=False)
    compacted = home.compactions()
    home.standin.window = 4 * WINDOW
    days_pass()
    assert "A bound is older than a day, so it is doubted: one request may try more." in panel()

    go_on(caller, TALK.turns + 1, TALK.turns + 5)

    assert home.compactions() == compacted
    assert "Smallest request refused" not in panel()


def test_a_window_that_was_named_is_not_said_to_be_tried_again(build: Build, panel: Any) -> None:
    grown(build)
    days_pass()

    assert "Named by a refusal 4,096" in panel()
    assert "doubted" not in panel()


def test_a_server_that_is_found_to_have_another_window_is_judged_anew(build: Build, panel: Any) -> None:
    home, caller = grown(build, lists=Lists.MODELS)
    home.standin.window = WINDOW // 2
    go_on(caller, TALK.turns + 1, TALK.turns + 2)
    assert "Named by a refusal 2,048" in panel()

    home.standin.window = 8 * WINDOW
    call_command("provider", "check", stdout=StringIO())

    assert "window 32,768 from the server, 3,276 kept for the answer" in panel()
    assert "2,048" not in panel()


def test_a_cut_is_confirmed_by_the_window_read_again(build: Build, panel: Any) -> None:
    """It was started again with half of the window, and nobody told Dominds."""
    home, caller = grown(build, lists=Lists.MODELS, overlong=Overlong.WITHOUT_OLDEST)
    assert home.standin.cuts == []
    home.standin.window = WINDOW // 2

    go_on(caller, TALK.turns + 1, TALK.turns + 7)

    assert len(home.confirmed_cuts()) == 1
    assert home.last.fate == Fate.ANSWERED
    assert len(home.standin.cuts) <= 3
    assert "window 2,048 from the server" in panel()


@pytest.mark.parametrize("typed", [2 * WINDOW, WINDOW // 2])
def test_an_admins_number_stays_and_the_lower_of_both_counts(build: Build, panel: Any, typed: int) -> None:
    home = build(window=WINDOW, reply=long_answers(TALK.chars))
    LLM.objects.update(context_length=typed, context_length_source="admin")

    go_on(home.caller(), 1, TALK.turns)

    assert len(home.standin.refusals) == (typed > WINDOW)
    assert max(one.size for one in home.standin.seen if one.read) <= min(typed, WINDOW)
    assert f"window {typed:,} set by an admin" in panel()


class Moody(CompatibleStandin):
    """Refuses the fifth request, with the status and the error that a test names."""

    refusal: ClassVar[tuple[int, dict[str, Any]]]
    has_refused = False

    async def chat(self, request: Request) -> Response:
        if len(self.seen) == 4 and not self.has_refused:
            self.has_refused = True
            status, error = self.refusal
            return JSONResponse({"error": error}, status_code=status)
        return await super().chat(request)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (413, {"type": "request_too_large", "message": "Request exceeds the maximum size"}),
        (400, {"type": "request_too_large", "message": "prompt is too long: 300 tokens > 200 maximum"}),
        (429, {"type": "rate_limit_error", "message": "prompt is too long: 300 tokens > 200 maximum per minute"}),
        (400, {"message": "messages.1.content.0: image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes"}),
        (400, {"message": "At most 4 image(s) may be provided in one prompt."}),
    ],
)  # fmt: skip
def test_bytes_rate_limits_and_images_teach_nothing(
    build: Build, monkeypatch: pytest.MonkeyPatch, status: int, error: dict[str, Any]
) -> None:
    monkeypatch.setattr("tests.overflow.conftest.CompatibleStandin", Moody)
    Moody.refusal = (status, error)
    home = build(window=WINDOW, reply=long_answers(TALK.chars))
    caller = home.caller()

    go_on_all_the_same(caller, 1, 6)

    assert taught() == (None, None, None)
    assert home.compactions() == 0


def test_a_refusal_of_a_request_smaller_than_what_was_read_teaches_nothing(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.overflow.conftest.CompatibleStandin", Moody)
    Moody.refusal = (400, {"message": "This model's maximum context length is 128 tokens."})
    home = build(window=WINDOW, reply=long_answers(TALK.chars))
    go_on(home.caller(), 1, 4)

    go_on_all_the_same(home.caller(), 1, 2)

    assert len(home.standin.seen) >= 5
    assert taught() == (None, None, None)


def go_on_all_the_same(caller: Caller, first: int, last: int) -> None:
    for number in range(first, last + 1):
        try:
            caller.say(TALK.turn(number), stream=False)
        except openai.APIStatusError:
            caller.messages.pop()


def taught() -> tuple[int | None, int | None, int | None]:
    """The window and the bound that refusals taught, and the window in force."""
    bounds = LlmBounds.objects.get().known
    return bounds.window, bounds.refused, LLM.objects.get().context_length


def test_where_cached_tokens_are_left_out_the_level_is_unknown_and_nothing_is_taken_for_a_cut(
    build: Build, panel: Any, client: Client
) -> None:
    _home, _caller = grown(build, **WAYS["leaves cached tokens out"])

    assert "The server reports only part of the prompt: the level stays unknown" in panel()
    health = client.get(f"/dialogs/{Dialog.objects.get().pk}/context.json").json()["health"]
    assert health["level"] == "unknown"


def test_an_answer_with_less_room_than_asked_for_ends_with_length_and_the_panel_says_why(
    build: Build, panel: Any
) -> None:
    home = build(window=WINDOW, reply=long_answers(3 * WINDOW), lists=Lists.MODELS, counts_answer=True)
    # Else a compaction would make room for the rest of the answer.
    LLM.objects.update(compaction="off")
    caller = home.caller(max_tokens=2_000)
    caller.messages.append({"role": "user", "content": prose(1, 8_000)})

    answer = caller.client.chat.completions.create(model=caller.model, messages=caller.messages, **caller.more)

    assert answer.choices[0].finish_reason == "length"
    sent = home.last.body
    assert 409 <= sent["max_tokens"] < 2_000
    assert f"could have {sent['max_tokens']:,} tokens at most instead of 2,000" in panel()
    assert home.compactions() == 0
