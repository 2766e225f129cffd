"""aider itself over so many edits and commits, through Dominds: `python -m benchmarks.aider_session [--edits 25]`.

A model server with a small window answers with valid edits; it was added by `provider add`, and nothing is configured.
What a person states in the first message must stand in every request of the chat, compactions must be rare, and the
session be one dialog. Exits with 1 where that does not hold. `--install` installs aider, in an environment of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.overflow.talk import missing, prose
from tests.stack import Stack, running_stack
from tests.standins.compatible import CompatibleStandin, Lists, Reply, Seen, text_of
from tests.standins.serving import serving

PINNED = "aider-chat==0.86.2"
PROGRAMS = Path(os.environ.get("DOMINDS_BENCH_AIDER") or Path(__file__).parent.parent / "var" / "bench-aider") / "bin"
WINDOW = 8_192
# One compaction in so many turns, at most.
TURNS_A_COMPACTION = 3
STATED = (
    "The goal: build app.py for project Heron, a parser of tide tables.",
    "Never use the eval builtin.",
    "Always keep every function under 20 lines.",
)
# How aider's own request for a commit message begins.
COMMITTING = "one-line Git commit messages"
ASKED = re.compile(r"add function (part_\d+)")
# Options with which aider asks nothing, downloads nothing and reports nothing.
QUIET = (
    *("--yes-always", "--no-check-update", "--no-show-model-warnings", "--analytics-disable", "--no-pretty"),
    *("--no-fancy-input", "--no-show-release-notes", "--no-detect-urls", "--no-suggest-shell-commands"),
    *("--no-auto-lint", "--map-tokens", "0", "--edit-format", "diff"),
)
FACTS = """
import json
from dialogs.models import Dialog
from health.models import CompactionRun
runs = CompactionRun.objects.filter(status="applied").exclude(trigger="carried").order_by("pk")
print(json.dumps({"dialogs": Dialog.objects.count(), "compacted_at": [run.finished_at.timestamp() for run in runs]}))
"""


def install() -> None:
    venv.create(PROGRAMS.parent, with_pip=True)
    subprocess.run([str(PROGRAMS / "python"), "-m", "pip", "install", "--quiet", PINNED], check=True)


def written(body: Mapping[str, Any]) -> Reply:
    """A commit message, or an edit block that adds what was asked for last."""
    if COMMITTING in text_of(body["messages"][0]):
        return Reply(text="feat: add one more function")
    asked = ASKED.findall(text_of(body["messages"][-1]))
    if not asked:
        return Reply(text="Ok.")
    code = "\n".join([f"def {asked[-1]}(part):", *(f"    part = part + {at}" for at in range(8)), "    return part"])
    block = f"app.py\n```python\n<<<<<<< SEARCH\n=======\n{code}\n\n\n>>>>>>> REPLACE\n```"
    return Reply(text=f"{block}\n\n{prose(int(asked[-1].removeprefix('part_')), 900)}")


@dataclass(frozen=True, kw_only=True)
class SessionRecord:
    """A session as git, the server and Dominds recorded it. `compacted_at`: seconds since the epoch."""

    commits: int
    functions: int
    dialogs: int
    compacted_at: list[float]
    seen: list[Seen]

    @property
    def chat(self) -> list[Seen]:
        return [one for one in self.seen if COMMITTING not in text_of(one.body["messages"][0])]

    @property
    def turns(self) -> list[int]:
        """Before which requests of the chat, counted from 1, something was compacted."""
        return [1 + sum(one.at < moment for one in self.chat) for moment in self.compacted_at]

    def faults(self, edits: int) -> Iterator[str]:
        if self.commits < edits or self.functions != edits:
            yield f"{self.commits} commits and {self.functions} functions of {edits}"
        if troubled := [one.why for one in self.seen if one.why]:
            yield f"{len(troubled)} requests were refused, the first: {troubled[0]}"
        if without := [at for at, one in enumerate(self.chat, 1) if missing(one, STATED)]:
            yield f"task or rules are missing in {len(without)} of {len(self.chat)} requests: {without}"
        gaps = [later - earlier for earlier, later in zip(self.turns, self.turns[1:], strict=False)]
        if any(gap < TURNS_A_COMPACTION for gap in gaps):
            yield f"compactions in turns {self.turns}: more than one in {TURNS_A_COMPACTION}"
        if self.dialogs != 1:
            yield f"{self.dialogs} dialogs for one session"


@contextmanager
def a_repository() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for command in (
            ["init", "-q"],
            ["config", "user.name", "Alice"],
            ["config", "user.email", "alice@example.org"],
        ):
            subprocess.run(["git", *command], cwd=place, check=True)
        (place / "app.py").write_text("# The tide tables.\n\n\n")
        subprocess.run("git add . && git commit -q -m begin", shell=True, cwd=place, check=True)
        yield place


def edit(place: Path, url: str, key: str, *, edits: int, summarise: bool) -> None:
    """Run one session; its messages are lines of aider's standard input."""
    said = [f"Please add function part_{number} to app.py." for number in range(1, edits + 1)]
    said[0] = " ".join([*STATED, said[0]])
    settings = {
        "OPENAI_API_BASE": f"{url}/v1",
        "OPENAI_API_KEY": key,
        "HOME": str(place.parent),
        "AIDER_ANALYTICS": "0",
    }
    settings["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    command = [str(PROGRAMS / "aider"), *QUIET, "--model", "openai/house/house-13b", "app.py"]
    # aider summarises its own history above a thousand tokens; this number is never reached.
    command += [] if summarise else ["--max-chat-history-tokens", "1000000"]
    subprocess.run(
        command,
        cwd=place,
        env={**os.environ, **settings},
        input="\n".join([*said, "/exit", ""]),
        text=True,
        check=True,
        stdout=sys.stderr,
        timeout=1_200,
    )


def held(edits: int, *, summarise: bool) -> SessionRecord:
    standin = CompatibleStandin(window=WINDOW, lists=Lists.MODELS, reply=written)
    with tempfile.TemporaryDirectory() as data, running_stack(Path(data) / "data", "--no-demo", wait=False) as stack:
        stack.wait_until(stack.answers, seconds=180)
        with serving(standin.app()) as upstream, a_repository() as place:
            edit(place, stack.url, a_key(stack, upstream), edits=edits, summarise=summarise)
            commits = subprocess.run(["git", "log", "--oneline"], cwd=place, check=True, capture_output=True, text=True)
            functions = (place / "app.py").read_text().count("def part_")
        facts = json.loads(stack.shell(FACTS).splitlines()[-1])
    return SessionRecord(commits=commits.stdout.count("\n") - 1, functions=functions, seen=standin.seen, **facts)


def a_key(stack: Stack, upstream: str) -> str:
    stack.run_manage("provider", "add", "openai", f"{upstream}/v1", "--name", "house")
    stack.shell("from django.contrib.auth.models import User; User.objects.create_user('alice')")
    return stack.run_manage("apikey", "create", "laptop", "--user", "alice", "--quiet").stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--install", action="store_true", help="install aider first: some 500 MB")
    parser.add_argument("--edits", type=int, default=25)
    parser.add_argument("--summarise", action="store_true", help="let aider sum up its history by itself")
    given = parser.parse_args()
    if given.install:
        install()
    began = time.monotonic()
    session = held(given.edits, summarise=given.summarise)
    sizes = [one.size for one in session.seen]
    print(
        f"{len(session.chat)} requests of the chat, {len(sizes) - len(session.chat)} for commit messages and the like"
    )
    print(f"{session.functions} functions, {session.commits} commits, {session.dialogs} dialogs")
    print(f"largest request {max(sizes):,} of {WINDOW:,} tokens; compactions in turns {session.turns}")
    print(f"{time.monotonic() - began:.0f} s")
    faults = list(session.faults(given.edits))
    print("\n".join(faults) or "All of it held.")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
