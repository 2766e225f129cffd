"""Histories for tests: drawn by hypothesis, small and nasty, or made from a seed, long and about something.

Tool rounds with parallel calls, code in six languages, Chinese, logs, images, priorities, pins, prompts of the
driver, summaries of earlier runs, empty messages. Everything is built of real values; the same seed gives the same.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

from hypothesis import strategies as st

from health.compaction.config import ContextConfig, PlaceholderDetail, RecoveryMode, SelectPassages
from health.compaction.laws.floor import floor_of
from health.compaction.terms.ports import Kit
from health.compaction.terms.units import Call, ContextState, Kind, Priority, Role, Unit, total
from tests.health.compaction.builders import WordCounter

# Four tokens a message, as real families have it: so that many tiny messages cost what they cost.
KIT = Kit(counter=WordCounter(per_message=4))

CODE = {
    "python": """
def {name}(rows):
    # keep the newest
    kept = {{}}
    for row in rows:
        kept[row.id] = "https://example.org/" + row.id
    return kept""",
    "javascript": """
export function {name}(rows) {{
  // keep the newest
  return [...new Map(rows.map((row) => [row.id, row])).values()];
}}""",
    "rust": """
fn {name}(rows: &[Row]) -> Vec<Row> {{
    // keep the newest
    rows.iter().rev().cloned().collect()
}}""",
    "go": """
func {name}(rows []Row) error {{
\t// keep the newest
\treturn fmt.Errorf("no rows in %v", rows)
}}""",
    "java": """
List<Row> {name}(List<Row> rows) {{
    /* keep the newest */
    return new ArrayList<>(rows);
}}""",
    "sql": """
-- {name}: keep the newest
SELECT id, max(changed) FROM rows GROUP BY id HAVING count(*) > 1;""",
}
SUBJECTS = ("invoice import", "release plan", "login page", "search index", "backup job", "garden party")
PEOPLE = ("Alice", "Bob", "Mira", "Tomás", "Yuki", "Noor")
SENTENCES = (
    "{who} moved the {what} to {day} because the test machine was busy.",
    "For the {what} we need {number} rows, and the key is {key}.",
    "The {what} must never run before the backup has finished.",
    "{who} found that the {what} fails with error {number} in {path}.",
    "I decided that the {what} uses the port {number}; {who} agrees.",
    "Could you look at the {what} again and tell {who} what changed?",
    "It works now: the {what} took {number} seconds on the small machine.",
    "Nobody has asked about the {what} since {day}, so it can wait.",
)
CHINESE = (
    "{who}把{what}改到了{day}，因为测试机器很忙。",
    "{what}必须在备份完成之后运行，不要提前。",
    "我们决定{what}使用端口{number}。",
    "{who}发现{what}在{path}中报错{number}。",
)
DAYS = ("Monday", "Tuesday", "the 14th", "Friday evening", "next week")
LOG = "2026-05-{day:02d} 10:{minute:02d}:07 {level} worker[{number}] {what} {state}"


def _slots(random: Random) -> dict[str, Any]:
    number = random.randint(100, 9999)
    return {
        "who": random.choice(PEOPLE),
        "what": random.choice(SUBJECTS),
        "day": random.choice(DAYS),
        "number": number,
        "key": f"K-{number}",
        "path": f"src/part{number % 9}/load.py",
    }


def prose(random: Random, sentences: int = 3, templates: tuple[str, ...] = SENTENCES) -> str:
    return " ".join(random.choice(templates).format(**_slots(random)) for _ in range(sentences))


def chinese(random: Random, sentences: int = 3) -> str:
    return "".join(random.choice(CHINESE).format(**_slots(random)) for _ in range(sentences))


def code(random: Random, functions: int = 3) -> str:
    language = random.choice(list(CODE))
    bodies = [CODE[language].format(name=f"newest_{random.randint(1, 99)}") for _ in range(functions)]
    return f"```{language}" + "\n".join(bodies) + "\n```"


def log(random: Random, lines: int = 12) -> str:
    return "\n".join(
        LOG.format(
            day=random.randint(1, 28),
            minute=random.randint(0, 59),
            level="ERROR" if random.random() < 0.1 else "INFO",
            number=random.randint(1, 9),
            what=random.choice(SUBJECTS),
            state=random.choice(("started", "done", "retried", "timed out")),
        )
        for _ in range(lines)
    )


def payload(random: Random, rows: int = 8) -> str:
    return json.dumps([_slots(random) | {"position": position} for position in range(rows)])


def blob(random: Random, size: int = 200) -> str:
    return base64.b64encode(random.randbytes(size)).decode()


TEXTS: dict[str, Callable[[Random], str]] = {
    "prose": prose,
    "chinese": chinese,
    "code": code,
    "log": log,
    "payload": payload,
    "blob": blob,
    "empty": lambda random: "",
    "word": lambda random: random.choice(("ok", "yes", "好", "thanks")),
}


class Telling:
    """Builds a history unit by unit, with rising ids and timestamps."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.units: list[Unit] = []

    def say(self, role: Role, content: str, **fields: Any) -> Telling:
        number = len(self.units)
        self.units.append(Unit(id=f"m{number}", role=role, content=content, timestamp=float(number), **fields))
        return self

    def round(self, *results: str, said: str = "", tool: str = "look", **fields: Any) -> Telling:
        """An assistant's parallel calls and their results, in one round."""
        name = f"r{len(self.units)}"
        ids = [f"{name}-c{position}" for position in range(len(results))]
        calls = tuple(Call(id=one, name=tool, arguments=json.dumps({"of": one})) for one in ids)
        self.say(Role.ASSISTANT, said, calls=calls, round_id=name, attached=" ".join(f"{tool} {one}" for one in ids))
        for one, result in zip(ids, results, strict=True):
            self.say(Role.TOOL, result, answers=one, round_id=name, **fields)
        return self

    def state(self, *, limit: int, kit: Kit = KIT, **fields: Any) -> ContextState:
        return ContextState(units=kit.counted(self.units), limit=limit, **fields)


# What hypothesis may draw: one turn of a history. Each adds whole rounds or single units.
TURNS = ("user", "assistant", "round", "parallel", "inserted", "plan", "digest", "placeholder", "image", "system")
MARKS: tuple[dict[str, Any], ...] = (
    {},
    {},
    {},
    {"priority": Priority.P1},
    {"priority": Priority.P3},
    {"pinned": True},
)


@st.composite
def histories(draw: st.DrawFn, *, max_turns: int = 20) -> tuple[Unit, ...]:
    """Units in order, uncounted. May be empty, may be all protected, may end in an open round."""
    telling = Telling(draw(st.integers(0, 2**16)))
    if draw(st.booleans()):
        telling.say(Role.SYSTEM, prose(telling.random, 2))
    for turn, text, mark in draw(
        st.lists(
            st.tuples(st.sampled_from(TURNS), st.sampled_from(list(TEXTS)), st.sampled_from(MARKS)),
            min_size=draw(st.sampled_from((0, 0, 8, 12))),
            max_size=max_turns,
        )
    ):
        _tell(telling, turn, TEXTS[text](telling.random), mark)
    return tuple(telling.units)


def _tell(telling: Telling, turn: str, text: str, mark: dict[str, Any]) -> None:
    sources = tuple(f"earlier-{len(telling.units)}-{position}" for position in range(2))
    simple = {
        "user": (Role.USER, text, {}),
        "assistant": (Role.ASSISTANT, text, {}),
        "inserted": (Role.USER, text, {"inserted": True}),
        "plan": (Role.USER, f"# Goal\n{text}", {"kind": Kind.PLAN_REF}),
        "digest": (Role.USER, f"[Summary] {text}", {"kind": Kind.SUMMARY, "source_ids": sources}),
        "placeholder": (Role.USER, "[Omitted]", {"kind": Kind.PLACEHOLDER, "source_ids": sources}),
        "image": (Role.USER, text, {"image_tokens": 100}),
        "system": (Role.SYSTEM, text, {}),
    }
    if turn in simple:
        role, content, fields = simple[turn]
        telling.say(role, content, **fields | mark)
    else:
        results = [text] if turn == "round" else [text, "ok", text * 2]
        telling.round(*results, **mark)


@st.composite
def states(draw: st.DrawFn, *, kit: Kit = KIT, **config: Any) -> ContextState:
    """States with limits from tiny to ample, any recovery and either fill."""
    units = kit.counted(draw(histories()))
    overhead = draw(st.sampled_from((0, 3, 40)))
    limit = draw(_limits(ContextState(units=units, limit=10**9, overhead_tokens=overhead), kit))
    settings = {
        "recovery_mode": draw(st.sampled_from(RecoveryMode)),
        "select_passages": SelectPassages(fill=draw(st.sampled_from((0.7, 1.0)))),
    }
    made = replace(ContextConfig(), **settings | config)
    if draw(st.booleans()):
        made = replace(made, discard_low_rel=replace(made.discard_low_rel, placeholder_detail=PlaceholderDetail.LINKED))
    task = draw(st.sampled_from(("", "Finish the release plan for Friday", "修复登录页面")))
    return ContextState(units=units, limit=limit, overhead_tokens=overhead, task=task, config=made)


def _limits(state: ContextState, kit: Kit) -> st.SearchStrategy[int]:
    """Mostly between what cannot be removed and all there is, where compaction has work; also too small, and ample."""
    held, floor = state.estimated_tokens, floor_of(state, kit).tokens
    shares = st.sampled_from((0.0, 0.02, 0.1, 0.2, 0.3, 0.5, 0.7, 0.85, 0.95, 1.0))
    between = shares.map(lambda share: max(1, int(floor + (held - floor) * share)))
    others = st.sampled_from((1, max(1, floor // 2), max(1, floor - 1), int(held * 1.1) + 1, int(held * 1.3) + 1))
    return st.one_of(between, between, between, others)


def long_talk(seed: int, *, tokens: int, turn: Callable[[Telling], object], kit: Kit = KIT) -> Telling:
    """A history of at least so many tokens: a system prompt, a first request, and turns; it ends with a question."""
    telling = Telling(seed)
    telling.say(Role.SYSTEM, "You help a small team. Answer briefly. You must never delete data without asking.")
    telling.say(Role.USER, "We prepare the release. Keep an eye on the invoice import, please.")
    spent = counted = 0
    while spent < tokens:
        turn(telling)
        spent += total(kit.counted(telling.units[counted:]))
        counted = len(telling.units)
    return telling.say(Role.USER, prose(telling.random, 1) + " What is left to do?")
