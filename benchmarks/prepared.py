"""How long a person waits for a pruning agent when the context is full: `python -m benchmarks.prepared [SECONDS]`.

A real `up`; the pruning agent, on a server of its own, is a script that takes so long for an answer. The same dialog
twice: with a decision that was prepared while there was room, and without (`prepare: never`). From sending the message
that does not fit until its answer stands.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

# isort: off
# In this order: the first makes a data folder and starts a Valkey, the second loads Django over them.
import tests.environment
import tests.django_loaded  # noqa: F401
# isort: on

from tests.dialogs.compacting_builders import long_text
from tests.dominds.test_killed_compaction import A_PRUNER, PREPARED, times_asked
from tests.dominds.test_survival import Chat
from tests.stack import running_stack

SECONDS = 10.0
WAIT_SECONDS = 300


def waited(folder: Path, seconds: float, *, is_prepared: bool) -> float:
    """Seconds from the message that does not fit until the turn is over."""
    _write(folder / "script.json", [{"text": "Done."}] * 4)
    with running_stack(folder, "--no-demo") as stack:
        rows = A_PRUNER if is_prepared else A_PRUNER.replace("{how: chain,", "{how: chain, prepare: never,")
        made = json.loads(stack.shell(rows))
        decision = json.dumps({"drop": made["oldest"], "summaries": [], "summary": "Old readings."})
        nothing = json.dumps({"drop": [], "summaries": [], "summary": ""})
        _write(folder / "pruner.json", [{"text": text, "delay": seconds} for text in (decision, nothing, nothing)])
        chat = Chat(stack, made["dialog"])
        chat.say("What does the rotor show?")
        if is_prepared:
            stack.wait_until(lambda: about(chat)["answers"] == 2, seconds=WAIT_SECONDS)
        chat.finish()
        asked = times_asked(stack) if is_prepared else 0
        begin = time.perf_counter()
        chat.say(f"And these? {long_text(900, 16)}")
        chat.finish()
        found = time.perf_counter() - begin
        assert about(chat)["changed"][:1] == ["prune_with_agent"], about(chat)
        print(f"  the pruning agent was asked {times_asked(stack) - asked} times meanwhile")
        return found


def about(chat: Chat) -> dict[str, list[str]]:
    found: dict[str, list[str]] = json.loads(chat.stack.shell(PREPARED.format(pk=chat.dialog)))
    return found


def _write(path: Path, steps: list[dict[str, object]]) -> None:
    path.write_text(json.dumps({"steps": steps}))


def main(seconds: float = SECONDS) -> None:
    found = {}
    for name, is_prepared in (("not prepared", False), ("prepared", True)):
        with tempfile.TemporaryDirectory() as folder:
            found[name] = waited(Path(folder), seconds, is_prepared=is_prepared)
        print(f"  {name:14} {found[name]:6.1f} s until the answer stands", flush=True)
    share = found["prepared"] / found["not prepared"]
    print(f"A pruning agent that takes {seconds:g} s for an answer: with its decision prepared x{share:.2f}")


if __name__ == "__main__":
    main(*(float(number) for number in sys.argv[1:]))
