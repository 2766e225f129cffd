"""A worker, a web server or Redis dies in mid-answer: nothing is lost, and nothing is answered twice."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis
from redis.backoff import ConstantBackoff
from redis.retry import Retry

from tests.stack import Stack, running_stack

pytestmark = pytest.mark.stack

ANSWER = " ".join(f"word{number}" for number in range(60))
ROWS = """
from django.contrib.auth.models import User
from dialogs.models import LLM, Agent, Provider
from dialogs.pages.writes import create_dialog
provider, _ = Provider.objects.get_or_create(name="scripted", kind="scripted", base_url="script.json")
llm, _ = LLM.objects.get_or_create(provider=provider, model_id="tiny", context_length=100_000)
agent, _ = Agent.objects.get_or_create(name="Helper", slug="helper", llm=llm)
print(create_dialog(owner=User.objects.get(), agent=agent).pk)
"""
STATE = """
import json
from dialogs.models import Dialog
d = Dialog.objects.get(pk="{pk}")
print(json.dumps(dict(busy=d.is_busy, messages=list(d.messages.values_list("content", flat=True)),
    generations=list(d.generations.values_list("status", "partial_text")))))
"""


@dataclass(frozen=True)
class Chat:
    """Alice's dialog on a running stack."""

    stack: Stack
    dialog: str

    @contextmanager
    def browser(self) -> Iterator[httpx.Client]:
        """Signed in, and with the token of a page's forms."""
        cookies = {"sessionid": self.stack.session_of("admin")}
        with httpx.Client(base_url=self.stack.url, cookies=cookies, follow_redirects=True, timeout=20) as browser:
            browser.get(f"/dialogs/{self.dialog}/").raise_for_status()
            yield browser

    def post(self, browser: httpx.Client, path: str, **fields: str) -> None:
        token = {"csrfmiddlewaretoken": browser.cookies["csrftoken"]}
        browser.post(path, data={**fields, **token}).raise_for_status()

    def say(self, text: str = "Hello") -> None:
        with self.browser() as browser:
            self.post(browser, f"/dialogs/{self.dialog}/send/", content=text)

    def stop(self) -> None:
        with self.browser() as browser:
            self.post(browser, f"/dialogs/{self.dialog}/stop/")

    def page(self) -> str:
        with self.browser() as browser:
            return browser.get(f"/dialogs/{self.dialog}/").raise_for_status().text

    def state(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.stack.shell(STATE.format(pk=self.dialog)))
        return found

    def begin(self) -> None:
        """Ask, and wait until some of the answer is in the database."""
        self.say()
        self.stack.wait_until(lambda: any(text for _status, text in self.state()["generations"]), seconds=90)

    def finish(self) -> dict[str, Any]:
        self.stack.wait_until(lambda: not self.state()["busy"], seconds=180)
        return self.state()


def write_script(folder: Path, *, delay: float = 0.06) -> None:
    """An answer that takes seconds, so that it can be broken off; one that is not broken off need take none."""
    step = {"text": [f"{word} " for word in ANSWER.split()], "delay": delay}
    (folder / "script.json").write_text(json.dumps({"steps": [step]}))


@pytest.fixture
def chat(mortal: Stack) -> Chat:
    write_script(mortal.data_dir)
    return Chat(mortal, mortal.shell(ROWS))


def test_a_killed_web_server_comes_back_and_the_turn_goes_on(chat: Chat) -> None:
    chat.begin()

    os.kill(chat.stack.pid("web"), signal.SIGKILL)

    state = chat.finish()
    assert [status for status, _ in state["generations"]] == ["finished"]
    assert state["messages"][-1].strip() == ANSWER
    chat.stack.wait_until(chat.stack.answers, seconds=90)


def test_a_killed_redis_costs_no_answer(chat: Chat) -> None:
    chat.begin()

    os.kill(chat.stack.pid("valkey"), signal.SIGKILL)

    state = chat.finish()
    assert [message.strip() for message in state["messages"]] == ["Hello", ANSWER]


def test_a_killed_redis_keeps_no_worker_from_other_turns(chat: Chat) -> None:
    """Nor ends it: it would have to wait for the turns that it is at, and take no other."""
    other, worker = Chat(chat.stack, chat.stack.shell(ROWS)), chat.stack.pid("turns")
    write_script(chat.stack.data_dir, delay=1.5)
    chat.begin()
    write_script(chat.stack.data_dir, delay=0)

    os.kill(chat.stack.pid("valkey"), signal.SIGKILL)

    other.say()
    assert other.finish()["messages"][-1].strip() == ANSWER
    assert chat.state()["busy"]
    chat.stop()
    chat.finish()
    assert chat.stack.pid("turns") == worker


def test_a_redis_that_refuses_to_write_for_a_while_ends_no_worker(chat: Chat) -> None:
    """As it does while its disk is full."""
    workers = chat.stack.pid("turns"), chat.stack.pid("compaction")
    address = (chat.stack.data_dir / "redis_url").read_text().strip()
    started_again = Retry(ConstantBackoff(0.5), 60)  # another test killed it
    server = redis.Redis.from_url(address, retry=started_again, retry_on_error=[redis.ConnectionError])

    server.config_set("min-replicas-to-write", 1)
    time.sleep(5)
    server.config_set("min-replicas-to-write", 0)

    write_script(chat.stack.data_dir, delay=0)
    chat.say()
    assert chat.finish()["messages"][-1].strip() == ANSWER
    assert (chat.stack.pid("turns"), chat.stack.pid("compaction")) == workers


def test_a_killed_worker_is_replaced_and_its_turn_and_what_was_typed_meanwhile_are_answered_once(chat: Chat) -> None:
    chat.begin()
    chat.say("And then?")
    write_script(chat.stack.data_dir, delay=0)

    os.kill(chat.stack.pid("turns"), signal.SIGKILL)

    state = chat.finish()
    (first, kept), *others = state["generations"]
    assert [message.strip() for message in state["messages"]] == ["Hello", ANSWER, "And then?", ANSWER]
    assert (first, [status for status, _ in others]) == ("interrupted", ["finished"] * 2)
    assert kept
    assert ANSWER.startswith(kept.strip())


def test_two_workers_that_hear_of_one_turn_answer_it_once(chat: Chat) -> None:
    chat.say()
    for _ in range(5):
        chat.stack.shell(
            f"import uuid; from dialogs.common.schedule import queue_drive; queue_drive(uuid.UUID('{chat.dialog}'))"
        )

    state = chat.finish()

    assert [status for status, _ in state["generations"]] == ["finished"]
    assert len(state["messages"]) == 2


def test_a_turn_that_was_running_when_dominds_stopped_is_finished_after_the_next_start(tmp_path: Path) -> None:
    """At once: its lease need not run out first."""
    settings = {"DOMINDS_LEASE_SECONDS": "600"}
    write_script(tmp_path, delay=0.3)
    with running_stack(tmp_path, "--no-demo", **settings) as first:
        chat = Chat(first, first.shell(ROWS))
        chat.begin()
        write_script(tmp_path, delay=0)
        first.stop(signal.SIGTERM)
        database = {"DATABASE_URL": first.environment["DATABASE_URL"]} if "DATABASE_URL" in first.environment else {}

        with running_stack(tmp_path, "--no-demo", **settings, **database) as second:
            state = Chat(second, chat.dialog).finish()

    assert [message.strip() for message in state["messages"]] == ["Hello", ANSWER]
