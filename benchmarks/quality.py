"""What stands after a compaction of what is needed later: `python -m benchmarks.quality [--recordings DIR]`.

One table: ours with its interval over conversations, beside it chance (random whole rounds), the best rival, how far
ours is ahead, and an oracle that knows the future and keeps whole messages. Of recordings: what they used later, what
users said, their turns word for word, how much is verbatim and stands in whole sentences, and of changed values whether
the newest one won. Of generated conversations, which test single abilities, and of questions: what of the needed
stands. Recordings are read where they are and never copied; `--half` judges one half of the conversations.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks import peers, questions
from benchmarks.devset import KINDS, cases
from benchmarks.devsets.case import Case, Message
from benchmarks.figures import CHANCE, ORACLE, OURS, Row, table_lines
from benchmarks.knowledge import judged as remembered
from benchmarks.peers import Peer, cuts
from benchmarks.recordings import Conversation, Moment, licences, moments, read
from benchmarks.scoring import Scored, scored, tokens, tokens_of
from benchmarks.whole_messages import ASKED, RIVALS, Method, most_told, oracle

MADE_CHARS, QUESTION_CHATS = 40_000, 12
HINT = (
    "Without --recordings DIR only what is generated is measured. DIR holds *.jsonl.gz, see benchmarks/recordings.py."
)


def engine(name: str) -> Any:
    """The engine named `module:function`, called as `compact_messages` is."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dominds.settings")
    import django

    django.setup()
    module, _, function = name.partition(":")
    return getattr(import_module(module), function)


# Recordings and questions


def ours_of_moments(compact: Any, embedder: str, moment: Moment, limit: int) -> list[Message]:
    return list(compact(moment.messages, limit_tokens=limit, task=moment.question, embedder=embedder).messages)


def ours_asked_last(compact: Any, moment: Moment, limit: int) -> list[Message]:
    """The question is the newest user message, not a task; what stands before it is judged."""
    asked = {"role": "user", "content": moment.question}
    room = limit + tokens_of(asked)
    return list(compact([*moment.messages, asked], limit_tokens=room, embedder="none").messages)[:-1]


def of_recordings(conversations: Sequence[Conversation], compact: Any, ratios: Sequence[str]) -> Iterator[Row]:
    ours = partial(ours_of_moments, compact, "static")
    methods = {OURS: ours, **RIVALS, ORACLE: oracle}
    for conversation in conversations:
        for moment in moments(conversation):
            yield from _rows(moment, methods, ratios)


def of_questions(asked: Iterator[Moment], compact: Any, ratios: Sequence[str]) -> Iterator[Row]:
    """Ours with MiniLM, with words alone, which a slow machine has, and without a task."""
    methods: dict[str, Method] = {
        OURS: partial(ours_of_moments, compact, "minilm"),
        f"{OURS}, no model": partial(ours_of_moments, compact, "none"),
        f"{OURS}, asked last": partial(ours_asked_last, compact),
        **ASKED,
        ORACLE: oracle,
    }
    for moment in asked:
        for row in _rows(moment, methods, ratios):
            yield Row(
                kind=row.kind,
                ratio=row.ratio,
                method=row.method,
                case=row.case,
                conversation=row.conversation,
                figures={"found": row.figures["know"], "over limit": row.figures["over limit"]},
            )


def _rows(moment: Moment, methods: dict[str, Method], ratios: Sequence[str]) -> Iterator[Row]:
    for ratio in ratios:
        limit = moment.limit(int(ratio) / 100)
        for name, method in methods.items():
            figures = remembered(moment, method(moment, limit), limit=limit)
            where = {"case": moment.id, "conversation": moment.conversation}
            yield Row(kind=moment.kind, ratio=ratio, method=name, figures=figures, **where)


# Single abilities: conversations that are generated


def ours_of_made(compact: Any, messages: Sequence[Message], limit: int, task: str) -> list[Message]:
    return list(compact(messages, limit_tokens=limit, task=task, model="gpt-4o").messages)


def of_made(kind: str, made: Sequence[Case], methods: dict[str, Peer], wanted: argparse.Namespace) -> Iterator[Row]:
    modes = [known for known in (False, True) if (known, wanted.known, wanted.unknown) not in ONE_MODE]
    for ratio in wanted.ratios.split(","):
        for known in modes:
            name = f"made {kind}, task {'known' if known else 'unknown'}"
            for case in made:
                all_of_it = {**methods, ORACLE: partial(_oracle_of_made, case, known)}
                for method, peer in all_of_it.items():
                    found = judged(peer, case, ratio=int(ratio) / 100, known=known, repeat=wanted.repeat)
                    if wanted.missed and method == OURS:
                        _tell_missed(case, found)
                    figures = {"kept": found.kept, "verbatim": found.verbatim, "over limit": found.over}
                    figures |= {"broken pairs": found.broken}
                    where = {"case": case.id, "conversation": case.id}
                    yield Row(kind=name, ratio=ratio, method=method, figures=figures, **where)


# (known, only known is asked for, only unknown is asked for)
ONE_MODE = ((False, True, False), (True, False, True))


def _oracle_of_made(case: Case, known: bool, messages: Sequence[Message], limit: int, task: str) -> list[Message]:
    """The oracle on generated conversations; with `--repeat` it chooses among all messages, as no method can."""
    needed = [
        (1.0, [frozenset(places) for places in _tellings(item.parts)])
        for item in case.needed
        if item.asked or not known
    ]
    fixed = {at for at, message in enumerate(case.messages) if message["role"] == "system"}
    sizes = [tokens_of(message) for message in case.messages]
    room = limit - sum(sizes[at] for at in fixed)
    kept = fixed | most_told(needed, cuts(case.messages), sizes, room=room)
    return [case.messages[at] for at in sorted(kept)]


def _tellings(parts: Sequence[Any]) -> Iterator[set[int]]:
    """All parts where they stand; and where each may stand elsewhere, the first such place of all."""
    yield {part.at for part in parts}
    if any(part.also for part in parts):
        yield {part.also[0].at if part.also else part.at for part in parts}


def judged(peer: Peer, case: Case, *, ratio: float, known: bool, repeat: bool) -> Scored:
    limit = int(tokens(case.messages) * ratio)
    task = case.task if known else ""
    started = time.process_time()
    result = list[Message]()
    for stage in _stages(case.messages, 3 if repeat else 1):
        result = list(peer([*result, *stage], limit, task)) if tokens([*result, *stage]) > limit else [*result, *stage]
    seconds = time.process_time() - started
    needed = [item for item in case.needed if item.asked] if known else None
    return scored(case, result, limit=limit, seconds=seconds, needed=needed)


def _stages(messages: Sequence[Message], count: int) -> Iterator[list[Message]]:
    """The conversation in about equal parts, cut between rounds."""
    whole, size, stage, at = cuts(messages), tokens(messages) / count, list[Message](), 1
    done = 0
    for cut in whole:
        stage += [messages[number] for number in cut]
        done += tokens([messages[number] for number in cut])
        if done >= size * at and cut is not whole[-1]:
            yield stage
            stage, at = [], at + 1
    yield stage


def _tell_missed(case: Case, judgement: Scored) -> None:
    print(f"{case.id} kept {judgement.kept:.0%}")
    for item in judgement.missed:
        print(f"    {item.why}: {' + '.join(part.text for part in item.parts)}")


# What is asked for


def rows(wanted: argparse.Namespace) -> Iterator[Row]:
    compact, ratios = engine(wanted.ours), wanted.ratios.split(",")
    if wanted.recordings:
        found = list(read(wanted.recordings, half=wanted.half))
        print("\n".join(licences(found)))
        yield from of_recordings(found, compact, ratios)
        if wanted.questions:
            yield from of_questions((m for one in found for m in questions.of_conversation(one)), compact, ratios)
    if wanted.kinds == "none":
        return
    if wanted.questions:
        yield from of_questions(questions.of_made_chats(wanted.seed, QUESTION_CHATS, wanted.chars), compact, ratios)
    names = wanted.peers.split(",") if wanted.peers else list(peers.ALL if wanted.all else peers.QUICK)
    methods = {OURS: partial(ours_of_made, compact), **{name: peers.ALL[name] for name in (CHANCE, *names)}}
    for kind in wanted.kinds.split(","):
        made = list(cases(kind, wanted.seed, wanted.cases, chars=wanted.chars))
        yield from of_made(kind, made, methods, wanted)


def main() -> None:
    wanted = _arguments()
    began = time.monotonic()
    if not wanted.recordings:
        print(HINT)
    lines = list(table_lines(rows(wanted)))
    print("", *lines, f"{time.monotonic() - began:.0f} seconds, half: {wanted.half}", sep="\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recordings", type=Path, help="a folder of recorded conversations (*.jsonl.gz)")
    parser.add_argument("--half", choices=("tune", "test", "both"), default="both", help="of the recordings")
    parser.add_argument("--ratios", default="50,25,10")
    parser.add_argument("--questions", action=argparse.BooleanOptionalAction, default=True, help="MiniLM takes minutes")
    parser.add_argument("--kinds", default=",".join(KINDS), help="of generated conversations, or none")
    parser.add_argument("--cases", type=int, default=6, help="generated conversations of each kind")
    parser.add_argument("--chars", type=int, default=MADE_CHARS, help="characters of each")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--known", action="store_true", help="generated ones only with the task known")
    parser.add_argument("--unknown", action="store_true", help="generated ones only with the task unknown")
    parser.add_argument("--repeat", action="store_true", help="generated ones grow by thirds, compacted each time")
    parser.add_argument("--missed", action="store_true", help="list what ours lost of generated ones")
    parser.add_argument("--all", action="store_true", help="the slow rivals too")
    parser.add_argument("--peers", default="", help="names of rivals for generated ones, by comma")
    parser.add_argument("--ours", default="health.services:compact_messages", help="module:function")
    return parser.parse_args()


if __name__ == "__main__":
    main()
