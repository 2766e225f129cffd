"""A model server with a small window, for a session: it refuses what is longer, as llama.cpp does, and keeps count.

It answers each request of the session with the answer that was written for it. Asked for a summary it writes a
plausible one: the sentences of what it is given that state most, in order, up to SUMMARY_TOKENS.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any

from benchmarks.devsets.case import Case, Message, text_of
from benchmarks.scoring import Standing, tokens, tokens_of_text
from benchmarks.session import asked

WINDOW = 8192
SUMMARY_TOKENS = 500
PIECE = 200
# How a summariser's prompt is known: context-guardian's, and the one of our own pruning agent.
SUMMARISERS = ("BEGIN_TRANSCRIPT", "You prune the history of a conversation")
SENTENCE = re.compile(r"[^.!?\n]+(?:[.!?](?!\s)[^.!?\n]*)*[.!?]?")
# A transcript's messages, each after who said it; and code or logs in one.
ENTRY = re.compile(r"^\[([^\]\n]+)\]: (.*?)(?=\n\n\[[^\]\n]+\]: |\Z)", re.DOTALL | re.MULTILINE)
WRAPPED = re.compile(r"(?<!\n)\n[ \t]*(?!\n)")
CODE = re.compile(r"```.*?```", re.DOTALL)
# What makes a sentence worth keeping: numbers, paths and names, and the words of rules and decisions.
STATES = re.compile(r"\d+|/\w+|\b[A-Z][a-z]+ [A-Z][a-z]+|\b(?:must|never|always|decided|until|deadline|budget)\b")


@dataclass
class Seen:
    """The requests that the server got. `facts`: for each turn, how many of the session's facts its request held."""

    refused: int = 0
    tokens: int = 0
    facts: dict[int, int] = field(default_factory=dict)
    rewrites: int = 0
    summaries: int = 0
    summary_chars: int = 0
    last: list[Message] = field(default_factory=list)


class SmallWindow:
    """The server's logic: from a request to a status and a text."""

    def __init__(self, case: Case, window: int = WINDOW) -> None:
        self.case, self.window, self.seen = case, window, Seen()
        self._turns = {case.messages[asked(turn)]["content"]: turn for turn in range(1, len(case.messages) // 2 + 1)}
        self._lock = Lock()

    def answer(self, messages: Sequence[Message]) -> tuple[int, str]:
        with self._lock:
            size = tokens(messages)
            self.seen.tokens += size
            prompt = text_of(messages[-1]) if len(messages) == 1 else text_of(messages[0])
            is_summary = any(mark in prompt for mark in SUMMARISERS)
            if is_summary:
                self.seen.summaries += 1
                self.seen.summary_chars += sum(len(text_of(message)) for message in messages)
            if size > self.window:
                self.seen.refused += 1
                told = f"request ({size} tokens) exceeds the available context size ({self.window} tokens)"
                return 400, f"{told}, try increasing it"
            return 200, summary_of(prompt) if is_summary else self._answer(list(messages))

    def _answer(self, messages: list[Message]) -> str:
        turn = self._turn_of(messages)
        standing = Standing(messages)
        self.seen.facts[turn] = sum(standing.has(self.case.messages, need.parts[0]) for need in self.case.needed)
        self.seen.rewrites += messages[: len(self.seen.last)] != self.seen.last
        self.seen.last = messages
        written = str(self.case.messages[asked(turn) + 1]["content"])
        # An answer that was cut is gone on with.
        said = next((text_of(message) for message in reversed(messages) if message["role"] == "assistant"), "")
        return written[len(said) :] if said and written.startswith(said) and said != written else written

    def _turn_of(self, messages: Sequence[Message]) -> int:
        """What is asked stands in the newest request that the session knows."""
        for message in reversed(messages):
            # Two messages of the user in a row may come as one.
            told = [(text_of(message).rfind(request), turn) for request, turn in self._turns.items()]
            place, turn = max(told)
            if message["role"] == "user" and place >= 0:
                return turn
        raise LookupError("No request of this session stands in what was sent.")


def summary_of(prompt: str) -> str:
    """A plausible summary: people's sentences before the assistant's, and no code."""
    told = CODE.sub("", prompt.partition("BEGIN_TRANSCRIPT\n")[2].partition("\nEND_TRANSCRIPT")[0] or prompt)
    sentences = [
        (who, found.group().strip())
        for who, said in ENTRY.findall(told)
        for found in SENTENCE.finditer(WRAPPED.sub(" ", said))
    ]
    chosen, room = set[int](), SUMMARY_TOKENS
    # Of two that state as much the earlier one: so a summary of a summary keeps what it said.
    for number in sorted(range(len(sentences)), key=lambda number: -_worth(*sentences[number])):
        size = tokens_of_text(sentences[number][1])
        if size <= room:
            room -= size
            chosen.add(number)
    return "\n".join(sentences[number][1] for number in sorted(chosen))


def _worth(who: str, sentence: str) -> float:
    share = len(STATES.findall(sentence)) / (5 + len(sentence.split()))
    return share if who == "assistant" else 2 * share


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status, text = self.server.mind.answer(body["messages"])
        size, said = tokens(body["messages"]), tokens_of_text(text)
        usage = {"prompt_tokens": size, "completion_tokens": said, "total_tokens": size + said}
        if status != 200:
            facts = {"n_prompt_tokens": size, "n_ctx": self.server.mind.window}
            error: dict[str, Any] = {"code": 400, "message": text, "type": "exceed_context_size_error", **facts}
            self._send(status, "application/json", json.dumps({"error": error}))
        elif body.get("stream"):
            self._send(200, "text/event-stream", "".join(_events(text, usage)))
        else:
            message = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
            whole = _head("chat.completion") | {"choices": [message], "usage": usage}
            self._send(200, "application/json", json.dumps(whole))

    def do_GET(self) -> None:
        self._send(404, "application/json", '{"error": {"message": "not found"}}')

    def _send(self, status: int, content_type: str, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_about: object) -> None:
        pass


def _head(kind: str) -> dict[str, Any]:
    return {"id": "c", "object": kind, "created": 1, "model": "m"}


def _events(text: str, usage: dict[str, int]) -> Iterator[str]:
    pieces = (text[at : at + PIECE] for at in range(0, len(text), PIECE))
    choices: list[dict[str, Any]] = [
        {"index": 0, "delta": {"content": piece}, "finish_reason": None} for piece in pieces
    ]
    choices.append({"index": 0, "delta": {}, "finish_reason": "stop"})
    for choice in choices:
        yield f"data: {json.dumps(_head('chat.completion.chunk') | {'choices': [choice]})}\n\n"
    yield f"data: {json.dumps(_head('chat.completion.chunk') | {'choices': [], 'usage': usage})}\n\ndata: [DONE]\n\n"


class Server(ThreadingHTTPServer):
    """Serves one session after the other; before the first it has no answers."""

    mind: SmallWindow

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def begin(self, case: Case) -> Seen:
        """The next session; what is seen of it."""
        self.mind = SmallWindow(case)
        return self.mind.seen


@contextmanager
def serving() -> Iterator[Server]:
    server = Server(("127.0.0.1", 0), _Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
