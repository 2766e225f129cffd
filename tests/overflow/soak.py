"""A conversation of a thousand turns, with tools and pictures, at a server that cuts what it has no room for.

The client sends everything again each time, as clients do. What is counted is what a person would notice: a turn that
failed, a prompt of which the server read only a part, a turn that takes longer than the first ones did. A turn's time
begins when its request is on its way: what OpenAI's library does with the whole history before that grows with it, and
is no work of ours.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import httpx2
import openai

from tests.overflow.house import PATIENCE_SECONDS, Caller, House
from tests.overflow.pictures import shown
from tests.overflow.talk import RULES, prose, task
from tests.standins.compatible import Lists, Overlong, Reply, answer_to, text_of

WINDOW = 8_192
EVERY_CALL, EVERY_PICTURE = 4, 10
LOOK_IT_UP = "Look it up in the register."
REGISTER = {
    "type": "function",
    "function": {
        "name": "read_register",
        "description": "Reads an entry of the register.",
        "parameters": {"type": "object", "properties": {"entry": {"type": "integer"}}, "required": ["entry"]},
    },
}
PROMISED = (task("Halvar"), *RULES.values())


def way(*, listed: bool) -> dict[str, Any]:
    """A server that drops the oldest without a word, and may say how large its window is."""
    lists = Lists.MODELS if listed else Lists.NOWHERE
    return {"window": WINDOW, "lists": lists, "overlong": Overlong.WITHOUT_OLDEST, "reply": reply}


def reply(body: Mapping[str, Any]) -> Reply:
    asked = text_of(body["messages"][-1])
    if body["messages"][-1]["role"] == "user" and LOOK_IT_UP in asked:
        return Reply(calls=[("read_register", {"entry": len(asked)})])
    return Reply(text=answer_to(asked, sentences=2))


class Timed(httpx2.HTTPTransport):
    """What is spent between a request and the end of its answer, of all requests since it was last asked: by the clock,
    and computed by this process, which is Dominds and the stand-in. Other work of the machine shows less in that."""

    seconds = cpu_seconds = 0.0

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        began, computed = time.perf_counter(), time.process_time()
        response = super().handle_request(request)
        response.read()
        self.seconds += time.perf_counter() - began
        self.cpu_seconds += time.process_time() - computed
        return response

    def since(self) -> tuple[float, float]:
        spent = self.seconds, self.cpu_seconds
        self.seconds = self.cpu_seconds = 0.0
        return spent


@dataclass
class Soaked:
    """`confirmed_at` is how many requests the server had seen when it was known to cut."""

    home: House
    # Each turn's, as `Timed` has them.
    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)
    failed: dict[int, str] = field(default_factory=dict)
    confirmed_at: int | None = None

    def median_ms(self, first: int, last: int) -> tuple[float, float]:
        """Of these turns, and of their computing alone; turns count from 1."""
        return 1000 * median(self.seconds[first - 1 : last]), 1000 * median(self.cpu_seconds[first - 1 : last])

    @property
    def cuts(self) -> list[int]:
        """The requests, counted from 1, of which the server read only a part."""
        return [at for at, one in enumerate(self.home.standin.seen, 1) if one in self.home.standin.cuts]

    @property
    def late_cuts(self) -> list[int]:
        """Those after the server was known to cut."""
        return [at for at in self.cuts if self.confirmed_at is not None and at > self.confirmed_at]


def soak(home: House, turns: int) -> Soaked:
    soaked, caller, timed = Soaked(home), home.caller(tools=[REGISTER]), Timed()
    caller.client = caller.client.with_options(http_client=httpx2.Client(transport=timed, timeout=PATIENCE_SECONDS))
    for number in range(1, turns + 1):
        try:
            _turn(caller, number)
        except openai.APIError as error:
            soaked.failed[number] = str(error)
            # The next turn is to find a history that is whole.
            caller.messages.append({"role": "assistant", "content": "(no answer)"})
        seconds, cpu_seconds = timed.since()
        soaked.seconds.append(seconds)
        soaked.cpu_seconds.append(cpu_seconds)
        if soaked.confirmed_at is None and home.confirmed_cuts():
            soaked.confirmed_at = len(home.standin.seen)
        # The stand-in remembers every request, and the garbage collector looks at all that lives: not at that.
        gc.freeze()
    return soaked


def _turn(caller: Caller, number: int) -> None:
    text = said_in(number)
    caller.messages.append({"role": "user", "content": text if number % EVERY_PICTURE else shown(text, number)})
    while calls := (said := caller.completed()).tool_calls:
        caller.messages.append(said.model_dump(exclude_none=True))
        for call in calls:
            entry = f"Entry for {call.id}: {prose(number, 500)}"
            caller.messages.append({"role": "tool", "tool_call_id": call.id, "content": entry})
    caller.messages.append({"role": "assistant", "content": said.content})


def said_in(number: int) -> str:
    if number == 1:
        return PROMISED[0]
    asked = LOOK_IT_UP if number % EVERY_CALL == 0 else ""
    return " ".join(filter(None, (f"Note {number}.", RULES.get(number), prose(number, 200), asked)))
