"""A repository of borrowed modules with one small fault planted; the agent looks around, tries, and is cut off.

The modules are those of the Python that runs this, copied when a case is made: real code of many authors.
"""

from __future__ import annotations

import random
import sysconfig
import tempfile
from pathlib import Path

from benchmarks.devsets.case import Case, Message, Part, Transcript
from benchmarks.devsets.grammar import Bank, Deck, Draw, bank
from benchmarks.devsets.logs import build_log
from benchmarks.devsets.workspace import Workspace

_BASH: Message = {
    "type": "function",
    "function": {
        "name": "bash",
        "description": "Run a command in the repository",
        "parameters": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
    },
}


class _Agent:
    """Runs commands in its workspace and writes down call and result."""

    def __init__(self, rng: random.Random, words: Bank, place: Workspace) -> None:
        self.rng, self.words, self.place = rng, words, place
        self.transcript = Transcript()
        self.lines = {name: Deck(rng, lines) for name, lines in words["lines"].items()}

    def say(self, role: str, line: str, **values: str) -> tuple[Part, ...]:
        return self.transcript.say(role, Draw(self.rng, self.words["slots"], **values).say(self.lines[line].deal()))

    def thinks(self) -> str:
        return Draw(self.rng, self.words["slots"]).say(self.lines["thinking"].deal())

    def run(self, command: str, thought: str = "") -> int:
        """The index of the result."""
        call = self.transcript.call("bash", {"command": command}, thought or None)
        return self.transcript.result(call, self.place.run(command))

    def text(self, at: int) -> str:
        return str(self.transcript.messages[at]["content"])

    def need_line(self, at: int, mark: str, why: str, *, asked: bool = True) -> None:
        """The first line of message `at` that holds `mark` is needed."""
        line = next(line for line in self.text(at).splitlines() if mark in line)
        self.transcript.need([Part(line.strip(), at)], why, asked=asked)


class _WritingAgent(_Agent):
    """Writes its commands into its text, and is answered by the user: no tool calls at all."""

    def run(self, command: str, thought: str = "") -> int:
        self.transcript.say("assistant", f"THOUGHT: {thought or self.thinks()}\n\n```bash\n{command}\n```")
        output = self.place.run(command)
        self.transcript.say("user", f"<returncode>0</returncode>\n<output>\n{output}</output>")
        return len(self.transcript.messages) - 1


def vendored(name: str, size: int) -> Case:
    """Tests fail, the agent finds out why, looks at a build's log, tries one thing that does not help."""
    return _case(_Agent, name, size)


def written(name: str, size: int) -> Case:
    """The same by an agent without tools."""
    return _case(_WritingAgent, name, size)


def _case(kind: type[_Agent], name: str, size: int) -> Case:
    rng = random.Random(name)
    words = bank("vendored")
    fault = rng.choice([fault for fault in words["faults"] if fault["old"] in _source(fault["module"])])
    with tempfile.TemporaryDirectory() as root:
        agent = kind(rng, words, Workspace(Path(root)))
        _lay_out(agent, fault)
        return _investigate(agent, fault, name, size)


def _source(module: str) -> str:
    path = Path(sysconfig.get_path("stdlib")) / f"{module}.py"
    return path.read_text() if path.exists() else ""


def _lay_out(agent: _Agent, fault: Bank) -> None:
    place, rng = agent.place, agent.rng
    others = [module for module in agent.words["modules"] if module != fault["module"] and _source(module)]
    agent.others = rng.sample(others, 9)
    for module in (fault["module"], *agent.others):
        source = _source(module)
        if module == fault["module"]:
            source = source.replace(fault["old"], fault["new"], 1)
        place.write(f"toolbox/{module}.py", source)
    place.write("toolbox/__init__.py", '"""Borrowed tools."""\n')
    place.write(f"tests/test_{fault['module']}.py", fault["test"])
    for module in agent.others:
        place.write(f"tests/test_{module}_imports.py", agent.words["import_test"].format(module=module))
    place.write("README.md", agent.words["readme"])
    place.write("CHANGELOG.md", agent.words["changelog"])
    place.write("logs/build.log", build_log(rng, rng.randrange(150, 420), _log_error(agent)))


def _log_error(agent: _Agent) -> str:
    agent.log_error = Draw(agent.rng, agent.words["slots"]).say(agent.rng.choice(agent.words["log_errors"]))
    return agent.log_error


def _investigate(agent: _Agent, fault: Bank, name: str, size: int) -> Case:
    rng, transcript, path = agent.rng, agent.transcript, f"toolbox/{fault['module']}.py"
    transcript.say("system", agent.words["system"])
    transcript.need(agent.say("user", "request", symptom=fault["symptom"]), "a constraint stated once", asked=True)
    agent.run("ls -p . toolbox tests logs", "Let me look at what is here.")
    telling = rng.sample((_look_at_log, _try, _remark, _remark, _changelog), 5)
    steps = [_run_tests, _find, *telling] if rng.random() < 0.5 else [*telling[:2], _run_tests, _find, *telling[2:]]
    share = size / (len(steps) + 1)
    for number, step in enumerate(steps, 1):
        step(agent, fault, path)
        while transcript.chars < number * share:
            _read_around(agent, fault, path)
    _read_around(agent, fault, path)
    if rng.random() < 0.5:
        agent.say("user", "go_on")
    task = (
        "Repair the fault behind this: {}. Edit the right line, keep to the user's wishes, report on the build's log."
    )
    return transcript.case("code", name, task.format(fault["symptom"]), [_BASH] if type(agent) is _Agent else [])


def _read_around(agent: _Agent, fault: Bank, path: str) -> None:
    """Something that turns out not to matter: a module, a search, a count."""
    module = agent.rng.choice(agent.others)
    lines = len(agent.place.read(f"toolbox/{module}.py").splitlines())
    first = agent.rng.randrange(1, max(2, lines - 60))
    command = agent.rng.choice((
        f"sed -n '{first},{first + agent.rng.randrange(40, 130)}p' toolbox/{module}.py",
        f"sed -n '{first},{first + agent.rng.randrange(30, 90)}p' toolbox/{module}.py",
        f"grep -n 'def ' toolbox/{module}.py",
        f"grep -rn '{agent.rng.choice(agent.words['searches'])}' toolbox | sort | head -{agent.rng.randrange(15, 40)}",
        "wc -l toolbox/*.py",
    ))  # fmt: skip
    agent.run(command, agent.thinks() if agent.rng.random() < 0.5 else "")


def _run_tests(agent: _Agent, fault: Bank, path: str) -> None:
    at = agent.run("python -m pytest -q --no-header tests", "First the tests as they are.")
    agent.need_line(at, "FAILED", "which test fails")
    errors = [line for line in agent.text(at).splitlines() if line.startswith("E ")]
    agent.transcript.need([Part(errors[0].strip(), at)], "how it fails", asked=True)


def _find(agent: _Agent, fault: Bank, path: str) -> None:
    """The faulty lines come into sight, and the agent says so, in words that a fix needs."""
    lines = agent.place.read(path).splitlines()
    changed = fault["new"].strip().splitlines()[0].strip()
    number = next(at for at, line in enumerate(lines, 1) if changed in line)
    agent.run(f"grep -n '{fault['search']}' {path}")
    first = max(1, number - agent.rng.randrange(15, 50))
    at = agent.run(f"sed -n '{first},{number + agent.rng.randrange(10, 40)}p' {path}")
    said = agent.say("assistant", "suspicion", path=path, number=str(number), search=fault["search"])
    line = next(line for line in agent.text(at).splitlines() if changed in line).strip()
    agent.transcript.need([Part(line, at)], "the faulty line", asked=True)
    agent.transcript.need(said, "where the fault is", asked=True)
    agent.say("user", "go_on")


def _look_at_log(agent: _Agent, fault: Bank, path: str) -> None:
    at = agent.run("cat logs/build.log", agent.thinks())
    agent.need_line(at, agent.log_error, "the one error in a long log")


def _try(agent: _Agent, fault: Bank, path: str) -> None:
    """Something that does not help: not to be tried again."""
    agent.run("python -m pytest -q --no-header --tb=no -x tests", agent.thinks())
    agent.transcript.need(agent.say("assistant", "in_vain", path=path), "what was tried in vain", asked=True)
    agent.say("user", "go_on")


def _remark(agent: _Agent, fault: Bank, path: str) -> None:
    """The user adds a wish."""
    agent.transcript.need(agent.say("user", "remark"), "a wish in passing", asked=True)
    agent.say("assistant", "noted")
    agent.say("user", "go_on")


def _changelog(agent: _Agent, fault: Bank, path: str) -> None:
    """A wish that is corrected later."""
    agent.say("user", "changelog")
    agent.say("assistant", "noted")
    for _ in range(3):
        _read_around(agent, fault, path)
    agent.transcript.need(agent.say("user", "rechangelog"), "changed: only the newest counts", asked=True)
    agent.say("assistant", "noted")
    agent.say("user", "go_on")
