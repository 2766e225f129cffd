"""How much of each prompt the next one begins with, and what a real llama.cpp takes from its cache for it.

`python -m benchmarks.prefix`. An agent with reminders works through turns; what it says and calls is a script, every
prompt is read by the demo model's own server, whose report is what the driver gets. Twice: as it is, and with the
beginning of the request written anew whenever a reminder changes, as it was once. Tokens only.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import pairwise, takewhile
from typing import Any
from unittest.mock import patch
from urllib.request import Request, urlopen

# isort: off
# In this order: the first makes a data folder and starts a Valkey, the second loads Django over them.
import tests.environment
import tests.django_loaded  # noqa: F401
# isort: on

from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.core.management import call_command

from benchmarks.llama import MODEL, server
from dialogs.agents.writes import add_reminder, write_taskdoc
from dialogs.driver.run import drive
from dialogs.models import LLM, Agent, Dialog, Provider
from dialogs.models.dialog import OwnTools
from dialogs.models.reminder import Author
from dialogs.pages.writes import create_dialog
from dialogs.turns.writes.messages import post_message
from tests.overflow.talk import prose
from tests.standins.compatible import CompatibleStandin, Reply
from tests.standins.serving import serving

TURNS = 12
WINDOW = 8_192


@dataclass(frozen=True, kw_only=True)
class Read:
    """One request as the server read it: the prompt that its template makes, and its report in tokens."""

    prompt: str
    tokens: int
    cached: int


@dataclass
class Front(CompatibleStandin):
    """A server with scripted answers; the real server reads every prompt, and its usage report is passed on."""

    address: str = ""
    read: list[Read] = field(default_factory=list)

    def _answer(self, body: Mapping[str, Any], read: int, cached: int) -> Any:
        asked = {name: body[name] for name in ("messages", "tools") if body.get(name)}
        prompt = _told(f"{self.address}/apply-template", asked)["prompt"]
        usage = _told(f"{self.address}/v1/chat/completions", {**asked, "max_tokens": 1})["usage"]
        cached = usage["prompt_tokens_details"]["cached_tokens"]
        self.read.append(Read(prompt=prompt, tokens=usage["prompt_tokens"], cached=cached))
        return super()._answer(body, read, cached)

    def _usage(self, read: int, said: int, cached: int) -> dict[str, Any]:
        return super()._usage(self.read[-1].tokens, said, cached)


def _told(address: str, body: Mapping[str, Any]) -> Any:
    asked = Request(address, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urlopen(asked, timeout=600) as answer:
        return json.load(answer)


def works(body: Mapping[str, Any]) -> Reply:
    """In each turn the agent adds or updates a reminder, and then answers."""
    said = body["messages"]
    turn = sum(one["role"] == "user" for one in said)
    if said[-1]["role"] == "tool":
        return Reply(text=prose(turn, 400))
    if turn % 3 == 0:
        return Reply(calls=[("update_reminder", {"number": 1, "content": f"Turn {turn}: {prose(turn + 50, 150)}"})])
    return Reply(calls=[("add_reminder", {"content": f"Turn {turn}: {prose(turn + 70, 150)}"})])


def run(address: str, turns: int) -> list[Read]:
    front = Front(model=MODEL, window=WINDOW, reply=works, address=address)
    with serving(front.app()) as there:
        dialog = _dialog(f"{there}/v1")
        for turn in range(turns):
            post_message(dialog=dialog, content=f"Step {turn}. {prose(turn + 90, 300)}")
            async_to_sync(_drive)(dialog)
    return front.read


async def _drive(dialog: Dialog) -> None:
    while (await Dialog.objects.aget(pk=dialog.pk)).is_busy:
        await drive(dialog.pk)


def _dialog(address: str) -> Dialog:
    """An agent with long instructions, a Taskdoc and three reminders: some thousand tokens before the first word."""
    name = address.rsplit(":", 1)[1][:5]
    provider = Provider.objects.create(name=name, kind="openai", base_url=address)
    llm = LLM.objects.create(provider=provider, model_id=MODEL, context_length=WINDOW)
    agent = Agent.objects.create(name=name, slug=name, llm=llm, instructions=prose(1, 3_000))
    owner, _made = User.objects.get_or_create(username="bench")
    dialog = create_dialog(owner=owner, agent=agent)
    Dialog.objects.filter(pk=dialog.pk).update(own_tools=OwnTools.ON)
    write_taskdoc(dialog=dialog, content=prose(2, 1_000))
    for number in range(3):
        add_reminder(dialog=dialog, content=prose(10 + number, 400), author=Author.PERSON)
    return dialog


def report(name: str, read: Sequence[Read]) -> dict[str, float]:
    """Shares over all of the run: of each prompt what the next begins with; of each, what came from the cache."""
    pairs = list(pairwise(read))
    stays = sum(_in_common(one.prompt, other.prompt) for one, other in pairs) / sum(len(one.prompt) for one, _ in pairs)
    cached = sum(other.cached for _, other in pairs) / sum(one.tokens for one, _ in pairs)
    anew = sum(other.tokens - other.cached for _, other in pairs) / len(pairs)
    print(f"  {name}: prompts of {read[0].tokens:,} to {read[-1].tokens:,} tokens")
    print(f"    {100 * stays:.1f} % of a prompt is the beginning of the next one")
    print(
        f"    {100 * cached:.1f} % of its tokens come from the server's cache, which reads {anew:,.0f} anew each time"
    )
    return {"stays": stays, "cached": cached, "anew": anew}


def _in_common(one: str, other: str) -> int:
    return sum(1 for _same in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def main(turns: int = TURNS) -> None:
    call_command("migrate", verbosity=0)
    print(f"An agent with reminders over {turns} turns, two requests each; {MODEL} on llama.cpp")
    found = {}
    for name, is_anew in (("as it is", False), ("with the beginning written anew each time", True)):
        anew = patch("dialogs.context.beginning._before", return_value=None) if is_anew else nullcontext()
        # A server of its own: nothing is in its cache.
        with server(context=WINDOW) as address, anew:
            found[name] = report(name, run(address, turns))
    print(json.dumps(found))


if __name__ == "__main__":
    main(*(int(number) for number in sys.argv[1:]))
