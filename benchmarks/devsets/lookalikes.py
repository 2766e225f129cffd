"""A generated package of modules that look alike, one with a fault; an agent opens windows of files, and is cut off.

Written apart from `vendored`: other tools, numbered lines, code that repeats itself so that only one of many
similar lines counts.
"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

from benchmarks.devsets.case import Case, Part, Transcript
from benchmarks.devsets.grammar import Bank, Deck, Draw, bank
from benchmarks.devsets.logs import build_log
from benchmarks.devsets.workspace import Workspace

_WINDOW = 60


class _Agent:
    def __init__(self, name: str, place: Workspace) -> None:
        self.rng, self.words, self.place = random.Random(name), bank("ledger"), place
        self.transcript = Transcript()
        self.lines = {line: Deck(self.rng, ways) for line, ways in self.words["lines"].items()}
        self.package = self.rng.choice(self.words["package"])
        self.entities = self.rng.sample(self.words["entities"], 9)
        self.entity, self.fault = self.entities[0], self.rng.choice(self.words["wrong"])
        self.field = ""

    def say(self, role: str, line: str, **values: str) -> tuple[Part, ...]:
        text = Draw(self.rng, self.words["slots"], **values).say(self.lines[line].deal())
        return self.transcript.say(role, text[:1].upper() + text[1:])

    def tool(self, name: str, arguments: dict[str, str | int], output: str, thought: str = "") -> int:
        return self.transcript.result(self.transcript.call(name, arguments, thought or None), output)

    def lay_out(self) -> None:
        for entity in self.entities:
            values = self._values(entity)
            self.place.write(f"{self.package}/{entity}.py", self.words["module"].format(**values))
            self.place.write(f"tests/test_{entity}.py", self.words["test"].format(**values))
        self.place.write(f"{self.package}/__init__.py", "")
        self.place.write("conftest.py", "")
        self.reason = Draw(self.rng, {}).say(
            "[ship] ledger of day #100-365# has #2-9# rows more than its seal says, run stopped at row #1000-99999#"
        )
        self.place.write("var/night.log", build_log(self.rng, self.rng.randrange(150, 350), self.reason))

    def _values(self, entity: str) -> Bank:
        rng, field = self.rng, self.rng.choice(self.words["fields"])
        lines = {key: text.format(field=field) for key, text in self.words["right"].items()}
        if entity == self.entity:
            self.field = field
            lines[self.fault["key"]] = self.fault["text"].format(field=field)
        numbers = {
            "grace": rng.randrange(7, 60),
            "reduced": 100 * rng.randrange(5, 50) + 40,
            "step": rng.randrange(5, 90),
        }
        names = {"entity": entity, "Entity": entity.capitalize(), "prefix": entity[:2].upper(), "field": field}
        return {"package": self.package, **names, **numbers, **lines}

    def open(self, path: str, line: int = 1, thought: str = "") -> int:
        """A window of a file, with numbers, as `open_file` shows it."""
        lines = self.place.read(path).splitlines()
        first = max(1, min(line - _WINDOW // 2, len(lines) - _WINDOW))
        shown = [f"{number}:{text}" for number, text in enumerate(lines, 1)][first - 1 : first - 1 + _WINDOW]
        head = f"[File: /workspace/{path} ({len(lines)} lines total)]\n({first - 1} more lines above)"
        tail = f"({max(0, len(lines) - first + 1 - _WINDOW)} more lines below)"
        return self.tool("open_file", {"path": path, "line_number": line}, "\n".join([head, *shown, tail]), thought)

    def thinks(self) -> str:
        return Draw(self.rng, {}).say(self.lines["thought"].deal())


def lookalikes(name: str, size: int) -> Case:
    """Tests, windows of files, a finding, wishes, a log, in one of several orders."""
    with tempfile.TemporaryDirectory() as root:
        agent = _Agent(name, Workspace(Path(root)))
        agent.lay_out()
        rng, transcript = agent.rng, agent.transcript
        symptom = agent.fault["symptom"].format(entity=agent.entity)
        transcript.say("system", agent.words["system"])
        transcript.need(agent.say("user", "request", symptom=symptom), "a constraint stated once", asked=True)
        agent.tool("list_dir", {"path": "."}, agent.place.run(f"ls -p . {agent.package} tests var"))
        steps = [_test, _find, *rng.sample((_vain, _wish, _wish, _log), 4)]
        steps = steps if rng.random() < 0.5 else steps[2:5] + steps[:2] + steps[5:]
        for number, step in enumerate(steps, 1):
            step(agent)
            while transcript.chars < number * size / (len(steps) + 1):
                _wander(agent)
        _wander(agent)
        if rng.random() < 0.5:
            agent.say("user", "go")
        task = "Repair this: {}. Change the right line of the right module, mind all wishes, explain the night run."
        return transcript.case("code", name, task.format(symptom))


def _wander(agent: _Agent) -> None:
    rng = agent.rng
    entity = rng.choice(agent.entities[1:])
    path = rng.choice([f"{agent.package}/{entity}.py", f"{agent.package}/{entity}.py", f"tests/test_{entity}.py"])
    if rng.random() < 0.25:
        word = rng.choice(["GRACE_DAYS", "def ", "return", "closed", "raise", "timedelta", "STEP"])
        agent.tool(
            "search_dir",
            {"term": word},
            agent.place.run(f"grep -rn '{word}' {agent.package} | sort | head -40"),
            agent.thinks(),
        )
    else:
        agent.open(path, rng.randrange(1, 90), agent.thinks() if rng.random() < 0.6 else "")


def _test(agent: _Agent) -> None:
    at = agent.tool("run_tests", {"path": "tests"}, agent.place.run("python -m pytest -q --no-header --tb=short tests"))
    text = agent.transcript.messages[at]["content"]
    for mark, why in (("FAILED", "which test fails"), ("E  ", "how it fails")):
        line = next(line for line in text.splitlines() if line.startswith(mark))
        agent.transcript.need([Part(line, at)], why, asked=True)


def _find(agent: _Agent) -> None:
    path = f"{agent.package}/{agent.entity}.py"
    wrong = agent.fault["text"].format(field=agent.field)
    mark = wrong if agent.fault["key"] != "above" else f"{agent.field} >= REDUCED"
    lines = agent.place.read(path).splitlines()
    number = next(at for at, line in enumerate(lines, 1) if mark in line)
    at = agent.open(path, number + agent.rng.randrange(-12, 13))
    agent.transcript.need([Part(f"{number}:{lines[number - 1]}", at)], "the faulty line", asked=True)
    said = agent.say("assistant", "finding", function=agent.fault["function"], path=path, at=str(number))
    agent.transcript.need(said, "where the fault is", asked=True)
    agent.say("user", "go")


def _vain(agent: _Agent) -> None:
    agent.transcript.need(agent.say("assistant", "vain"), "what was tried in vain", asked=True)
    agent.say("user", "go")


def _wish(agent: _Agent) -> None:
    agent.transcript.need(agent.say("user", "wish"), "a wish in passing", asked=True)
    agent.say("assistant", "ack")
    agent.say("user", "go")


def _log(agent: _Agent) -> None:
    at = agent.tool("read_log", {"path": "var/night.log"}, agent.place.read("var/night.log"))
    agent.transcript.need([Part(agent.reason, at)], "the one error in a long log", asked=True)
