"""A Dominds in this process: its `/v1` over a real socket, a stand-in behind it and the official client before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import StringIO
from typing import Any

import openai
from django.contrib.auth.models import User
from django.core.management import call_command

from dialogs.api.writes.api_keys import create_key
from dialogs.models import Dialog
from health.models import CompactionRun, ContextEvent
from tests.overflow.talk import SYSTEM, Talk
from tests.standins.compatible import Cached, CompatibleStandin, Lists, Overlong, Reply, Seen, answer_to, text_of
from tests.standins.serving import serving

PATIENCE_SECONDS = 120
# The event of a prompt of which the server has been found to read only a part.
CUT_EVENT = "PROMPT_CUT"
CARRIED = CompactionRun.Trigger.CARRIED
# The ways of a server with its window. Nothing is configured in Dominds for any of them.
WAYS: dict[str, dict[str, Any]] = {
    "lists it": {"lists": Lists.MODELS},
    "tells it as llama.cpp does": {"lists": Lists.PROPS},
    "names it in a refusal": {},
    "names nothing": {"names": False},
    "cuts the oldest": {"overlong": Overlong.WITHOUT_OLDEST},
    "cuts the middle": {"overlong": Overlong.WITHOUT_MIDDLE},
    "cuts at a token": {"overlong": Overlong.FILLED},
    "leaves cached tokens out": {"lists": Lists.MODELS, "cached": Cached.LEFT_OUT},
    "reports cached tokens beside": {"lists": Lists.MODELS, "cached": Cached.BESIDE},
    "counts the answer": {"lists": Lists.MODELS, "counts_answer": True},
}


def long_answers(chars: int) -> Callable[[Any], Reply]:
    """Answers of about so many characters, which follow from the words that end the request: the newest message may
    stand in one with what compaction left directly before it."""
    return lambda body: Reply(text=answer_of(text_of(body["messages"][-1]).rsplit("\n\n", 1)[-1], chars))


def answer_of(asked: str, chars: int) -> str:
    return answer_to(asked, sentences=max(1, chars // 85))


@dataclass
class Caller:
    """The official client, with the history that it keeps and sends again in full."""

    client: openai.OpenAI
    model: str
    messages: list[Any] = field(default_factory=list)
    more: dict[str, Any] = field(default_factory=dict)

    def say(self, content: Any, *, stream: bool = True) -> str:
        """One turn; the answer. Raises what the client raises."""
        self.messages.append({"role": "user", "content": content})
        return self.answer(stream=stream)

    def answer(self, *, stream: bool = True) -> str:
        """What comes to the history as it is; it is kept there."""
        text = self._streamed() if stream else self.completed().content or ""
        self.messages.append({"role": "assistant", "content": text})
        return text

    def completed(self) -> Any:
        """The message object of an answer that is not streamed."""
        return (
            self.client.chat.completions.create(model=self.model, messages=self.messages, **self.more)
            .choices[0]
            .message
        )

    def _streamed(self) -> str:
        options: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
        with self.client.chat.completions.create(
            model=self.model, messages=self.messages, **options, **self.more
        ) as chunks:
            return "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)


@dataclass(frozen=True)
class House:
    """`model` is what a client names to speak to the stand-in."""

    standin: CompatibleStandin
    url: str
    key: str
    model: str

    def caller(self, *, system: str = SYSTEM, **more: Any) -> Caller:
        client = openai.OpenAI(base_url=f"{self.url}/v1", api_key=self.key, max_retries=0, timeout=PATIENCE_SECONDS)
        return Caller(client, self.model, [{"role": "system", "content": system}], more)

    @property
    def last(self) -> Seen:
        """The last request that was answered."""
        return next(one for one in reversed(self.standin.seen) if one.read)

    def confirmed_cuts(self) -> list[ContextEvent]:
        found = ContextEvent.objects.filter(code=CUT_EVENT, llm__provider__name=self.model.split("/")[0])
        return list(found.order_by("pk"))

    def compactions(self) -> int:
        """Runs that changed what the model is sent, without views that only went along with a changed history."""
        applied = CompactionRun.objects.filter(status=CompactionRun.Status.APPLIED).exclude(trigger=CARRIED)
        return applied.filter(dialog__llm__provider__name=self.model.split("/")[0]).count()

    def dialogs(self) -> int:
        return Dialog.objects.count()


@contextmanager
def house(standin: CompatibleStandin, owner: User, *, name: str = "house") -> Iterator[House]:
    """The stand-in is added with the command that people use, and with nothing else."""
    # The application is imported late: Django has its settings by then.
    from dominds.asgi import application

    kind = "llamacpp" if standin.lists == Lists.PROPS else "openai"
    with serving(standin.app()) as upstream, serving(application) as url:
        call_command("provider", "add", kind, f"{upstream}/v1", name=name, stdout=StringIO())
        yield House(standin, url, create_key(owner=owner, name="laptop")[1], f"{name}/{standin.model}")


def hold(caller: Caller, talk: Talk, *, each: Callable[[int], None] = lambda _number: None) -> list[str]:
    """Every turn of the talk, streamed and not by turns; the answers."""
    answers = []
    for number in range(1, talk.turns + 1):
        each(number)
        answers.append(caller.say(talk.turn(number), stream=number % 2 == 1))
    return answers
