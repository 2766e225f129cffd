"""What each part of `select_passages` brings: `python -m benchmarks.ablation --recordings DIR [--half test]`.

Each part is switched off in turn, for this process only, and the same conversations are compacted again. One row for
each part: by how many points `know` falls without it, of each kind and ratio; a part whose numbers are about 0
everywhere earns nothing. With a stated question (no model): how much less of the answers is found.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from benchmarks import questions
from benchmarks.devset import KINDS, cases
from benchmarks.devsets.case import Case, Message
from benchmarks.figures import OURS, Row, grouped, mean
from benchmarks.knowledge import judged
from benchmarks.quality import engine, ours_of_made, ours_of_moments
from benchmarks.quality import judged as judged_of_made
from benchmarks.recordings import Moment, moments, read
from health.compaction.terms.reasons import Why
from health.compaction.terms.units import Role

CORE = "health.compaction."
PASSAGES = CORE + "strategies.select_passages."
CHATS, CHARS = 6, 30_000
MADE = 4  # conversations of each generated kind
Off = Mapping[str, Any]


def nothing(*_: Any, **__: Any) -> frozenset[Any]:
    return frozenset()


def as_it_is(text: str) -> str:
    return text


def leaning_on_nothing(sources: Any, places: Sequence[Any], *_: Any) -> list[tuple[int, ...]]:
    return [()] * len(places)


def nothing_changed(units: Any) -> Any:
    from health.compaction.reading.force import nothing

    return nothing("")


def nothing_told_anew(units: Any) -> Any:
    from health.compaction.trimming.records import Superseded

    return Superseded(results=frozenset(), rows={})


# The replacement of each part, by the name of the function that is replaced.
PARTS: dict[str, Off] = {
    "what is no longer in force leaves": {CORE + "choosing.sources.in_force": nothing_changed},
    "changed, stated and named weigh more": {PASSAGES + name: 1.0 for name in ("HOLDS", "CHANGED", "NAMED")},
    "statements weigh more than questions": {PASSAGES + "STATEMENT": 1.0},
    "newest result of a record only": {CORE + "choosing.sources.superseded": nothing_told_anew},
    "rows of key=value": {CORE + "choosing.sources.in_rows": as_it_is},
    "no exact repeat": {CORE + "choosing.sources._said_again": nothing},
    "typed words first": {PASSAGES + "USER_SHARE": 0.0},
    "newest messages whole": {PASSAGES + "TAIL_SHARE": 0.0},
    "passages lean on others": {PASSAGES + "leaning": leaning_on_nothing},
    "rows that were taken up": {PASSAGES + "IN_PLAY": 1.0},
    "users weigh more": {CORE + "choosing.worth.PRIOR": dict.fromkeys((Role.USER, Role.ASSISTANT, Role.TOOL), 1.0)},
    "who says little weighs more": {CORE + "choosing.worth.SHARE_POWER": 0.0},
    "short results weigh more": {CORE + "choosing.worth.BREVITY_MOST": 1.0},
    "said in results only: half": {CORE + "reading.features._ONLY_IN_RESULTS": 1.0},
    "said again adds less": {CORE + "choosing.choose._ADDS": (1.0,) * 5},
    "neighbours join": {CORE + "choosing.choose.JOIN": 0.0},
    "task: whole messages": {CORE + "choosing.worth.TASK_SHARE": 0.0, CORE + "choosing.worth.AN_ANSWER": 0},
    "task: what was typed last": {CORE + "choosing.worth.unanswered": lambda units: ""},
}


@contextmanager
def without(off: Off) -> Iterator[None]:
    with ExitStack() as stack:
        for name, instead in off.items():
            stack.enter_context(patch(name, instead))
        yield


def kept(moments: Sequence[Moment], made: Sequence[Case], ratios: Sequence[str], off: Off) -> Iterator[Row]:
    with without(off):
        for ratio in ratios:
            yield from (_of_moment(moment, ratio) for moment in moments)
            yield from (_of_made(case, ratio, known) for case in made for known in (False, True))


def _of_moment(moment: Moment, ratio: str) -> Row:
    limit = moment.limit(int(ratio) / 100)
    figures = judged(moment, ours_of_moments(compacted, "none", moment, limit), limit=limit)
    where = {"case": moment.id, "conversation": moment.conversation}
    return Row(kind=moment.kind, ratio=ratio, method=OURS, figures=figures, **where)


def _of_made(case: Case, ratio: str, known: bool) -> Row:
    compact = partial(compacted, embedder="none")
    found = judged_of_made(partial(ours_of_made, compact), case, ratio=int(ratio) / 100, known=known, repeat=False)
    name = f"made {case.id.split('-')[0]}{', asked' if known else ''}"
    return Row(kind=name, ratio=ratio, method=OURS, figures={"know": found.kept}, case=case.id, conversation=case.id)


def compacted(messages: Sequence[Message], **given: Any) -> Any:
    """An error because a part is missing is not counted as its effect."""
    outcome = engine("health.services:compact_messages")(messages, **given)
    if failed := [step.why for step in outcome.steps if step.why and step.why.why is Why.FAILED]:
        raise RuntimeError(str(failed[0]))
    return outcome


def means(rows: Iterator[Row]) -> dict[str, float]:
    """`know` by kind and ratio; for changed values also the share that is resolved."""
    found: dict[str, float] = {}
    for (kind, ratio), group in grouped(rows).items():
        for name in ("know", "resolved"):
            given = [row for row in group[OURS].values() if row.figures.get(name) is not None]
            if given and (name == "know" or not kind.startswith("questions")):
                found[f"{kind} {ratio}{'' if name == 'know' else ' ' + name}"] = 100 * mean(given, name)
    return found


def cases_of(folder: Path, half: str) -> list[Moment]:
    conversations = list(read(folder, half=half))
    asked = (moment for one in conversations for moment in questions.of_conversation(one))
    made = questions.of_made_chats(1, CHATS, CHARS)
    return [*(moment for one in conversations for moment in moments(one)), *asked, *made]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recordings", type=Path, required=True)
    parser.add_argument("--half", choices=("tune", "test", "both"), default="test")
    parser.add_argument("--ratios", default="50,25,10")
    parser.add_argument("--parts", default="", help="beginnings of names, by comma")
    given = parser.parse_args()
    ratios = given.ratios.split(",")
    known = cases_of(given.recordings, given.half), [one for kind in KINDS for one in cases(kind, 1, MADE, chars=CHARS)]
    whole = means(kept(*known, ratios, {}))
    print("| Without | " + " | ".join(whole) + " |\n|---|" + "---:|" * len(whole))
    print("| (nothing: what is kept) | " + " | ".join(f"{share:.1f}" for share in whole.values()) + " |", flush=True)
    for name, off in PARTS.items():
        if name.startswith(tuple(given.parts.split(","))):
            left = means(kept(*known, ratios, off))
            print(
                f"| {name} | " + " | ".join(f"{left[key] - share:+.1f}" for key, share in whole.items()) + " |",
                flush=True,
            )


if __name__ == "__main__":
    main()
