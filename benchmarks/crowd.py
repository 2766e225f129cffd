"""The people and clients of `benchmarks.load`, for locust, which runs this in an environment of its own.

A person signs in, reads pages, and writes into a dialog of their own, whose websocket they watch as a page does. A
client asks `/v1` for streams in conversations that grow, resending all of them. Of an answer two moments are reported
as actions of their own: the first word, and the last. What is asked before everybody has signed in has a star: the
machine is busy with passwords then.
"""

from __future__ import annotations

import json
import os
import random
import re
import time
from collections.abc import Iterator
from typing import Any

import gevent
import requests
import websocket
from locust import HttpUser, between, task

SETUP: dict[str, Any] = json.loads(os.environ["DOMINDS_BENCH_CROWD"])
TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')
SENDING = re.compile(r'name="sending" value="([^"]+)"')
SOCKET = re.compile(r'ws-connect="([^"]+)"')
FIRST, LAST = "t0=", f"t{SETUP['chunks'] - 1}="
ANSWER_SECONDS = 120
MOST_TURNS = 20


class Crowd(HttpUser):
    abstract = True
    # The people who have not signed in yet.
    outside = SETUP["people"]

    @staticmethod
    def named(name: str) -> str:
        return f"{name} *" if Crowd.outside else name

    def told(self, kind: str, name: str, since: float, error: Exception | None = None) -> None:
        """Report the time since `since` under this name."""
        self.environment.events.request.fire(
            request_type=kind,
            name=self.named(name),
            response_time=1000 * (time.perf_counter() - since),
            response_length=0,
            exception=error,
            context={},
        )


class Person(Crowd):
    fixed_count = SETUP["people"]
    wait_time = between(*SETUP["thinks"])
    taken = iter(SETUP["names"])

    def on_start(self) -> None:
        name = next(self.taken)
        self.dialogs, self.own = SETUP["dialogs"][name], SETUP["own"][name]
        token = self._token(self.client.get("/login/", name="sign in, its page"))
        fields = {"csrfmiddlewaretoken": token, "username": name, "password": SETUP["password"]}
        how = {"headers": {"Referer": self.host}, "allow_redirects": False, "catch_response": True}
        with self.client.post("/login/", fields, name="sign in", **how) as answer:
            if answer.status_code != 302:
                answer.failure("not let in")
        Crowd.outside -= 1

    @staticmethod
    def _token(answer: Any) -> str:
        return found[1] if (found := TOKEN.search(answer.text)) else ""

    @task(3)
    def the_list(self) -> None:
        self.client.get("/", name=self.named("list"))

    @task(1)
    def search(self) -> None:
        self.client.get(f"/?q=word{random.randrange(4000)}", name=self.named("search"), headers={"HX-Request": "true"})

    @task(3)
    def long_dialog(self) -> None:
        """A long dialog that existed before the run."""
        self.client.get(f"/dialogs/{random.choice(self.dialogs)}/", name=self.named("dialog"))

    @task(1)
    def insights(self) -> None:
        self.client.get("/insights/", name=self.named("insights"))

    @task(1)
    def events(self) -> None:
        self.client.get("/events/", name=self.named("events"))

    @task(4)
    def write(self) -> None:
        """A message into their own dialog, and the answer word by word."""
        page = self.client.get(f"/dialogs/{self.own}/", name=self.named("dialog, own"))
        sending = SENDING.search(page.text)
        if page.status_code != 200 or sending is None:
            return
        path = SOCKET.search(page.text)[1].replace("&amp;", "&")
        cookie = "; ".join(f"{name}={value}" for name, value in self.client.cookies.items())
        address = f"{self.host.replace('http', 'ws')}{path}"
        watched = websocket.create_connection(address, cookie=cookie, origin=self.host, timeout=ANSWER_SECONDS)
        reading = gevent.spawn(self._read, watched, time.perf_counter())
        fields = {"content": said(), "sending": sending[1], "csrfmiddlewaretoken": self._token(page)}
        headers = {"HX-Request": "true", "Referer": self.host}
        answer = self.client.post(f"/dialogs/{self.own}/send/", fields, name=self.named("send"), headers=headers)
        if answer.status_code == 204:
            reading.join()
        reading.kill()
        watched.close()

    def _read(self, watched: Any, since: float) -> None:
        """Until the last word of this answer; frames before its first are those of the page."""
        begun = round(time.time() * 1e6)
        try:
            for name, mark in (("first word", FIRST), ("last word", LAST)):
                fresh = re.compile(rf"(?<!\w){mark}(\d+)")
                while not any(int(at) >= begun for at in fresh.findall(watched.recv())):
                    pass
                self.told("page", name, since)
        except Exception as error:
            self.told("page", "last word", since, error)


class Client(Crowd):
    fixed_count = SETUP["clients"]
    wait_time = between(*SETUP["thinks"])

    def on_start(self) -> None:
        self.messages: list[dict[str, str]] = []

    @task
    def ask(self) -> None:
        if len(self.messages) >= 2 * MOST_TURNS:
            self.messages = []
        self.messages.append({"role": "user", "content": said()})
        body = {"model": SETUP["model"], "stream": True, "messages": self.messages}
        since, answer = time.perf_counter(), ""
        try:
            for line in self._lines(body):
                answer += self._word(line, answer, since)
        except Exception as error:
            self.told("/v1", "last word", since, error)
            self.messages = []
            return
        error = None if LAST in answer else RuntimeError(f"an answer ended early, {answer[-80:]!r}")
        self.told("/v1", "last word", since, error)
        self.messages.append({"role": "assistant", "content": answer or "Nothing."})

    def _lines(self, body: dict[str, Any]) -> Iterator[bytes]:
        headers = {"Authorization": f"Bearer {SETUP['key']}"}
        url = f"{self.host}/v1/chat/completions"
        # Not locust's own client, which reports only when a stream's headers came.
        with requests.post(url, json=body, headers=headers, stream=True, timeout=ANSWER_SECONDS) as found:
            found.raise_for_status()
            yield from found.iter_lines()

    def _word(self, line: bytes, answer: str, since: float) -> str:
        if not line.startswith(b"data: {"):
            return ""
        choices = json.loads(line[6:]).get("choices") or [{}]
        word = choices[0].get("delta", {}).get("content") or ""
        if word and not answer:
            self.told("/v1", "first word", since)
        return word


def said() -> str:
    """A question that is new in this run."""
    words = " ".join(f"word{random.randrange(4000)}" for _ in range(25))
    return f"Question {random.getrandbits(40)}: {words}?"
