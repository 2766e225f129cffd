"""A stand-in for a server that speaks OpenAI's chat completions, with a small window and ways of its own with it.

It counts with a template and a ratio that Dominds does not know. Five things can be chosen, because servers differ in
them: whether it lists its window, what it does with a prompt that is too long, whether a refusal names the window,
whether the answer that is asked for counts with the prompt, and whether its usage leaves cached tokens out.
It refuses what is no valid chat, remembers every request, and says what became of each.

`python -m tests.standins.compatible --port 8000 --window 8192 --lists models` is a program;
`/standin` tells what it saw.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import re
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.standins.serving import run

Message = Mapping[str, Any]
CHARS_PER_TOKEN = 3.3
IMAGE_TOKENS = 650
PIECE_CHARS = 200
# An answer that nothing bounds; a server has some number of its own.
MOST_ANSWER_TOKENS = 4_096

OVERLONG = (
    "This model's maximum context length is {window} tokens. However, your messages resulted in {prompt} tokens. "
    "Please reduce the length of the messages."
)
BOTH_OVERLONG = (
    "This model's maximum context length is {window} tokens. However, you requested {both} tokens ({prompt} in the "
    "messages, {answer} in the completion). Please reduce the length of the messages or completion."
)
UNNAMED = "Your input exceeds the context window of this model. Please adjust your input and try again."


class Lists(StrEnum):
    """Where the window can be read before anything is asked."""

    NOWHERE = ""
    # As vLLM does: `max_model_len` of the models list.
    MODELS = "models"
    # As llama.cpp does: `n_ctx` of /props; it counts at /tokenize too.
    PROPS = "props"


class Overlong(StrEnum):
    """What becomes of a prompt above the window."""

    REFUSED = "refused"
    # System messages and the newest stay, the oldest of the others go.
    WITHOUT_OLDEST = "without oldest"
    # The beginning stays to the first words of the user, then half of the rest goes.
    WITHOUT_MIDDLE = "without middle"
    # As many tokens are read as leave room for an answer, wherever that begins: the report is always the same.
    FILLED = "filled"


class Cached(StrEnum):
    """How a prompt is reported whose beginning is that of the request before."""

    COUNTED = "counted"
    # Only what was computed is reported, as servers do that keep no book of the rest.
    LEFT_OUT = "left out"
    # The same, with what was left out in a field of its own, as proxies in front of Anthropic do.
    BESIDE = "beside"


class Fate(StrEnum):
    ANSWERED = "answered"
    REFUSED = "refused"
    CUT = "cut"
    INVALID = "invalid"


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What the model says: words, or calls of tools as (name, arguments)."""

    text: str = ""
    calls: Sequence[tuple[str, Mapping[str, Any]]] = ()


@dataclass(frozen=True, kw_only=True)
class Seen:
    """One request: how large its prompt was as the server counts, what became of it, how much of it was read."""

    body: Mapping[str, Any]
    size: int
    fate: Fate
    read: int = 0
    why: str = ""
    # Seconds since the epoch: when it came.
    at: float = field(default_factory=time.time)

    @property
    def text(self) -> str:
        """All that a model would read of it."""
        return "\n".join(map(text_of, self.body["messages"]))


def prose_for(body: Mapping[str, Any]) -> Reply:
    """An answer that depends on the last message only, so that whoever asked knows what it must be."""
    return Reply(text=answer_to(text_of(body["messages"][-1])))


def answer_to(asked: str, sentences: int = 3) -> str:
    number = zlib.crc32(asked.strip().encode())
    places = ("the north pier", "the old customs shed", "the lamp store", "the rope walk", "the ice house")
    said = (
        f"I looked at this in {places[(number >> at) % 5]} and found {(number >> at) % 89 + 2} entries worth a note."
        for at in range(sentences)
    )
    return " ".join(said)


@dataclass
class CompatibleStandin:
    """`counts_answer`: prompt and the answer asked for together are held against the window, as vLLM does. `refuses`
    says what the model's chat template does not take."""

    window: int = 8_192
    model: str = "house-13b"
    lists: Lists = Lists.NOWHERE
    overlong: Overlong = Overlong.REFUSED
    names: bool = True
    counts_answer: bool = False
    cached: Cached = Cached.COUNTED
    reply: Callable[[Mapping[str, Any]], Reply] = prose_for
    refuses: Callable[[Sequence[Message], Sequence[Any]], str] | None = None
    # Before its list of models is answered.
    silent_seconds: float = 0.0
    seen: list[Seen] = field(default_factory=list)

    @property
    def asked(self) -> list[Mapping[str, Any]]:
        """Every request body, in the order of their coming."""
        return [one.body for one in self.seen]

    @property
    def refusals(self) -> list[Seen]:
        return self.of(Fate.REFUSED)

    @property
    def cuts(self) -> list[Seen]:
        return self.of(Fate.CUT)

    @property
    def invalid(self) -> list[str]:
        """Why each request was refused that was no valid chat."""
        return [one.why for one in self.of(Fate.INVALID)]

    def of(self, fate: Fate) -> list[Seen]:
        return [one for one in self.seen if one.fate == fate]

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/v1/chat/completions", self.chat, methods=["POST"]),
                Route("/v1/models", self.models),
                Route("/props", self.props),
                Route("/apply-template", self.template, methods=["POST"]),
                Route("/tokenize", self.tokenize, methods=["POST"]),
                Route("/standin", self.tell),
            ]
        )

    async def models(self, request: Request) -> Response:
        await asyncio.sleep(self.silent_seconds)
        more = {"max_model_len": self.window} if self.lists == Lists.MODELS else {}
        return JSONResponse(
            {"object": "list", "data": [{"id": self.model, "object": "model", "owned_by": "me", **more}]}
        )

    async def props(self, request: Request) -> Response:
        if self.lists != Lists.PROPS:
            return _not_found()
        return JSONResponse({"default_generation_settings": {"n_ctx": self.window}, "total_slots": 1})

    async def template(self, request: Request) -> Response:
        if self.lists != Lists.PROPS:
            return _not_found()
        body = await request.json()
        return JSONResponse({"prompt": rendered(body["messages"], body.get("tools") or ())})

    async def tokenize(self, request: Request) -> Response:
        if self.lists != Lists.PROPS:
            return _not_found()
        return JSONResponse({"tokens": [0] * tokens_of((await request.json())["content"])})

    async def tell(self, request: Request) -> Response:
        """What became of the requests so far. `?asked=3` adds the last three."""
        last = int(request.query_params.get("asked", 0))
        told = {"requests": len(self.seen), "window": self.window, "sizes": [one.size for one in self.seen]}
        told |= {"fates": Counter(one.fate for one in self.seen), "invalid": self.invalid}
        return JSONResponse(told | ({"asked": self.asked[-last:]} if last else {}))

    async def chat(self, request: Request) -> Response:
        body = await request.json()
        messages, tools = body["messages"], body.get("tools") or ()
        size = count(messages, tools)
        if why := self._why_invalid(body):
            return self._refuse(body, size, Fate.INVALID, why)
        if why := self._why_too_long(size, asked_for(body)):
            return self._refuse(body, size, Fate.REFUSED, why)
        before = next((one.body for one in reversed(self.seen) if one.read), None)
        kept = messages if size < self.window else self._cut(messages, tools)
        is_filled = kept != messages and self.overlong == Overlong.FILLED
        read = self.window - self.window // 8 if is_filled else count(kept, tools)
        self.seen.append(Seen(body=body, size=size, fate=Fate.CUT if kept != messages else Fate.ANSWERED, read=read))
        return self._answer(body, read, self._from_cache(before, body, read))

    def _why_invalid(self, body: Mapping[str, Any]) -> str:
        """As the template does, where there is one: a server's own checks are others."""
        if self.refuses is None:
            return _why_invalid(body, self.model)
        why = _why_pairs(body["messages"]) or self.refuses(body["messages"], body.get("tools") or ())
        return why and f"Jinja Exception: {why}"

    def _why_too_long(self, size: int, answer: int | None) -> str:
        if self.counts_answer and answer and size + answer > self.window:
            return BOTH_OVERLONG.format(window=self.window, both=size + answer, prompt=size, answer=answer)
        if size < self.window or self.overlong != Overlong.REFUSED:
            return ""
        return OVERLONG.format(window=self.window, prompt=size) if self.names else UNNAMED

    def _refuse(self, body: Mapping[str, Any], size: int, fate: Fate, why: str) -> Response:
        self.seen.append(Seen(body=body, size=size, fate=fate, why=why))
        code = "context_length_exceeded" if fate == Fate.REFUSED and self.names else None
        error = {"message": why, "type": "invalid_request_error", "param": "messages", "code": code}
        return JSONResponse({"error": error}, status_code=400)

    def _cut(self, messages: Sequence[Message], tools: Sequence[object]) -> Sequence[Message]:
        """What is read of a prompt that is too long. A result goes with its call, as templates want it."""
        if self.overlong == Overlong.WITHOUT_MIDDLE:
            first = next((at for at, one in enumerate(messages) if one["role"] == "user"), 0) + 1
            middle = [*messages[first : first + max(1, (len(messages) - first) // 2)]]
        else:
            first, middle = sum(one["role"] == "system" for one in messages), []
        kept = [*messages[:first], *messages[first + len(middle) :]]
        while len(kept) > first + 1 and (count(kept, tools) >= self.window or kept[first]["role"] == "tool"):
            del kept[first]
        return kept

    def _from_cache(self, before: Mapping[str, Any] | None, body: Mapping[str, Any], read: int) -> int:
        """Tokens at the beginning that the request before began with too."""
        if before is None or before.get("tools") != body.get("tools"):
            return 0
        alike = 0
        for one, other in zip(before["messages"], body["messages"], strict=False):
            if one != other:
                break
            alike += 1
        return min(count(body["messages"][:alike], ()), read - 1) if alike else 0

    def _usage(self, read: int, said: int, cached: int) -> dict[str, Any]:
        if self.cached == Cached.COUNTED:
            counts: dict[str, Any] = {"prompt_tokens": read, "prompt_tokens_details": {"cached_tokens": cached}}
        else:
            counts = {"prompt_tokens": read - cached}
            if self.cached == Cached.BESIDE:
                counts["prompt_tokens_details"] = {"cached_tokens": cached}
        return counts | {"completion_tokens": said, "total_tokens": counts["prompt_tokens"] + said}

    def _answer(self, body: Mapping[str, Any], read: int, cached: int) -> Response:
        """As long as it was asked for, and as there is room in the window."""
        reply = self.reply(body)
        room = min(asked_for(body) or MOST_ANSWER_TOKENS, self.window - read)
        text = reply.text[: int(max(1, room) * CHARS_PER_TOKEN)]
        reason = "tool_calls" if reply.calls else "stop" if text == reply.text else "length"
        at = len(self.seen)
        calls = [
            {
                "id": f"call_{at}_{number}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(given)},
            }
            for number, (name, given) in enumerate(reply.calls)
        ]
        usage = self._usage(read, tokens_of(text) + sum(tokens_of(json.dumps(call)) for call in calls), cached)
        if body.get("stream"):
            with_usage = (body.get("stream_options") or {}).get("include_usage")
            events = _events(self.model, text, calls, reason, usage if with_usage else None)
            return StreamingResponse(iter(["".join(events)]), media_type="text/event-stream")
        message = {"role": "assistant", "content": text or None} | ({"tool_calls": calls} if calls else {})
        choice = {"index": 0, "message": message, "finish_reason": reason}
        return JSONResponse({**_head(self.model, "chat.completion"), "choices": [choice], "usage": usage})


def asked_for(body: Mapping[str, Any]) -> int | None:
    return body.get("max_completion_tokens") or body.get("max_tokens")


# --- Counting ------------------------------------------------------------------------------------
def count(messages: Sequence[Message], tools: Sequence[object]) -> int:
    """Tokens of a prompt: its template filled in, at a ratio, and so many for each image."""
    images = sum(part.get("type") == "image_url" for one in messages for part in _parts(one))
    return tokens_of(rendered(messages, tools)) + IMAGE_TOKENS * images


def tokens_of(text: str) -> int:
    return math.ceil(len(text) / CHARS_PER_TOKEN)


def rendered(messages: Sequence[Message], tools: Sequence[object]) -> str:
    """The prompt as one text, with marks around each message and around the tools."""
    offered = f"<<TOOLS>>\n{json.dumps(list(tools), indent=1)}\n<</TOOLS>>\n" if tools else ""
    return f"<s>{offered}" + "".join(f"[{one['role']}] {text_of(one)} [/{one['role']}]</s>\n" for one in messages)


def text_of(message: Message) -> str:
    """What is said, and what is called."""
    calls = message.get("tool_calls") or ()
    called = "".join(f"\n{json.dumps(call['function'])}" for call in calls)
    return "\n".join(part.get("text") or "" for part in _parts(message)) + called


def _parts(message: Message) -> Sequence[Mapping[str, Any]]:
    content = message.get("content")
    return content if isinstance(content, list) else [{"type": "text", "text": content or ""}]


# --- What is a valid chat ------------------------------------------------------------------------
def _why_invalid(body: Mapping[str, Any], model: str) -> str:
    """Empty where it is one. Strict as the strictest: hosted services and templates each refuse some of these."""
    messages = body["messages"]
    if body.get("model") != model:
        return f"The model {body.get('model')!r} does not exist."
    return _why_order(messages) or _why_empty(messages) or _why_pairs(messages)


def _why_order(messages: Sequence[Message]) -> str:
    roles = [one.get("role") for one in messages]
    talk = roles[sum(1 for _ in _leading(roles)) :]
    if not talk or talk[0] != "user":
        return f"The first message after the system's must be the user's; roles: {roles[:6]}."
    if unknown := set(talk) - {"user", "assistant", "tool"}:
        return f"Only the first messages may be the system's; found {sorted(map(str, unknown))} later."
    if talk[-1] not in ("user", "tool"):
        return "The last message must be the user's or a tool's."
    return ""


def _leading(roles: Sequence[str | None]) -> Iterator[str]:
    for role in roles:
        if role not in ("system", "developer"):
            return
        yield role


def _why_empty(messages: Sequence[Message]) -> str:
    for at, one in enumerate(messages):
        parts = _parts(one)
        filled = any(part.get("type") == "image_url" or re.search(r"\S", part.get("text") or "") for part in parts)
        if not filled and not one.get("tool_calls") and one["role"] != "tool":
            return f"messages[{at}] ({one['role']}) has no content."
    return ""


def _why_pairs(messages: Sequence[Message]) -> str:
    """Each call has exactly one result right behind it, each result its call."""
    owed: list[str] = []
    for at, one in enumerate(messages):
        if one["role"] == "tool":
            if one.get("tool_call_id") not in owed:
                return f"messages[{at}]: a tool's result without a call before it."
            owed.remove(one["tool_call_id"])
        elif owed:
            return f"messages[{at}]: these calls have no result: {owed}."
        for call in one.get("tool_calls") or ():
            if not _is_object(call["function"].get("arguments")):
                return f"messages[{at}]: the arguments of a call are no JSON object."
            owed.append(call["id"])
    return f"These calls have no result: {owed}." if owed else ""


def _is_object(arguments: object) -> bool:
    try:
        return isinstance(json.loads(str(arguments)), dict)
    except ValueError:
        return False


# --- Wire ----------------------------------------------------------------------------------------
def _head(model: str, what: str) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": what, "created": 1, "model": model}


def _events(
    model: str, text: str, calls: Sequence[Mapping[str, Any]], reason: str, usage: Mapping[str, Any] | None
) -> Iterator[str]:
    pieces = [{"content": text[at : at + PIECE_CHARS]} for at in range(0, len(text), PIECE_CHARS)]
    asked = [{"tool_calls": [{"index": at, **call}]} for at, call in enumerate(calls)]
    for delta in ({"role": "assistant", "content": ""}, *pieces, *asked):
        yield _event(model, [{"index": 0, "delta": delta, "finish_reason": None}])
    yield _event(model, [{"index": 0, "delta": {}, "finish_reason": reason}])
    if usage:
        yield _event(model, [], usage=usage)
    yield "data: [DONE]\n\n"


def _event(model: str, choices: list[Any], **more: Any) -> str:
    return f"data: {json.dumps({**_head(model, 'chat.completion.chunk'), 'choices': choices, **more})}\n\n"


def _not_found() -> Response:
    return JSONResponse({"error": {"message": "Not found", "type": "not_found_error"}}, status_code=404)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--window", type=int, default=8_192)
    parser.add_argument("--lists", type=Lists, default=Lists.NOWHERE, help="models or props")
    parser.add_argument("--overlong", type=Overlong, default=Overlong.REFUSED, help="; ".join(Overlong))
    parser.add_argument("--cached", type=Cached, default=Cached.COUNTED, help="; ".join(Cached))
    parser.add_argument("--unnamed", action="store_true", help="a refusal does not name the window")
    parser.add_argument("--counts-answer", action="store_true", help="refuse prompt and answer together")
    given = parser.parse_args()
    standin = CompatibleStandin(
        window=given.window,
        lists=given.lists,
        overlong=given.overlong,
        cached=given.cached,
        names=not given.unnamed,
        counts_answer=given.counts_answer,
    )
    run(standin.app(), port=given.port, name="The stand-in server")


if __name__ == "__main__":
    main()
