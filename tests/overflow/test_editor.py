"""A programming assistant as people use it: example turns in front, a file message that moves to the end and is
rewritten each turn, 25 edits. The person's task and rules stay in every request, and compactions stay rare.

The server lists its window of 8,192 tokens; nothing is configured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.overflow.conftest import Build
from tests.overflow.house import WAYS, Caller, House
from tests.overflow.talk import missing, prose
from tests.standins.compatible import Reply, text_of

WINDOW = 8_192
EDITS = 25
SYSTEM = "Act as an expert software developer. Answer with edit blocks for the files that you were given."
# What a client shows a model before each conversation, as few-shot examples. No person ever said it.
EXAMPLES = (
    ("user", "Change get_factorial() so that it uses math.factorial."),
    ("assistant", "To do that, import math and drop the old loop.\n\nmathweb.py\n```\n-  loop\n+  import math\n```"),
    ("user", "Move hello() into a file of its own."),
    ("assistant", "I make hello.py, and import it where it was.\n\nhello.py\n```\n+ def hello():\n```"),
    ("user", "I switched to a new code base. Please don't consider the above files or try to edit them any longer."),
    ("assistant", "Ok."),
)
HERON, OTTER = "project Heron", "project Otter"


def edit(body: Mapping[str, Any]) -> Reply:
    """An edit block that adds the function that was asked for."""
    name = text_of(body["messages"][-1]).split()[3]
    return Reply(text=f"app.py\n```\n{function(name)}\n```\n\nThis adds {name}. {prose(len(name), 900)}")


def function(name: str) -> str:
    checks = "\n".join(f"    if part == {name}_{at}:\n        return part" for at in range(6))
    return f"def {name}(part):\n{checks}\n    return None"


@dataclass
class Session:
    """`done` is the chat so far; the file stands behind it, as it is now, before what is asked next."""

    caller: Caller
    project: str
    done: list[dict[str, str]] = field(default_factory=list)
    compactions: list[int] = field(default_factory=list)

    @property
    def stated(self) -> tuple[str, ...]:
        return (
            f"The goal: build app.py for {self.project}, a parser of tide tables.",
            "Never use the eval builtin.",
            "Always keep every function under 20 lines.",
        )

    def ask(self, home: House, number: int) -> str:
        asked = f"Please add function part_{number} to app.py, which finds the tide of pier {number}."
        asked = f"{asked} {' '.join(self.stated)}" if number == 1 else asked
        frame = [{"role": role, "content": text} for role, text in (("system", SYSTEM), *EXAMPLES)]
        file = "\n\n".join(function(f"part_{at}") for at in range(1, number)) or "# empty"
        shown = [
            {
                "role": "user",
                "content": f"I have added these files, trust them as they are now.\n\napp.py\n```\n{file}\n```",
            },
            {"role": "assistant", "content": "Ok, any changes I propose will be to those files."},
        ]
        self.caller.messages = [*frame, *self.done, *shown, {"role": "user", "content": asked}]
        answer = self.caller.answer()
        self.done += [{"role": "user", "content": asked}, {"role": "assistant", "content": answer}]
        self.compactions.append(home.compactions())
        return answer


def test_the_persons_task_and_rules_stand_in_every_request_and_a_message_that_moves_costs_no_compaction_a_turn(
    build: Build,
) -> None:
    home = build(window=WINDOW, reply=edit, **WAYS["lists it"])
    session = Session(home.caller(), HERON)

    answers = [session.ask(home, number) for number in range(1, EDITS + 1)]

    assert all(f"This adds part_{number}." in said for number, said in enumerate(answers, 1))
    assert (home.standin.invalid, home.standin.refusals) == ([], [])
    assert {at: gone for at, one in enumerate(home.standin.seen, 1) if (gone := missing(one, session.stated))} == {}
    assert f"def part_{EDITS - 1}(part):" in home.last.text, "the file as it is now"
    made = [later - earlier for earlier, later in zip(session.compactions, session.compactions[3:], strict=False)]
    assert max(made) <= 1, session.compactions
    assert session.compactions[-1] >= 1
    assert home.dialogs() == 1


def test_two_sessions_that_begin_alike_are_two_dialogs(build: Build) -> None:
    home = build(window=WINDOW, reply=edit, **WAYS["lists it"])
    sessions = [Session(home.caller(), project) for project in (HERON, OTTER)]

    for session in sessions:
        for number in range(1, 13):
            session.ask(home, number)

    assert home.dialogs() == 2
    assert [one for one in home.standin.seen if HERON in one.text and OTTER in one.text] == []
