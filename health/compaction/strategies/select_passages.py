"""Chooses sentences, list items and records inside the messages, and keeps those that are needed most.

Where a task is stated, what matches it; otherwise, and beside it, as many distinct names, numbers and events as
the budget holds. The newest messages stay whole; what is chosen of older ones stands in a digest, verbatim.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Generator, Sequence
from typing import Any

import numpy as np

from health.compaction.choose import GAP_TOKENS, Candidate, Chooser
from health.compaction.cuts import Cut, cuts, ids_of
from health.compaction.features import Features
from health.compaction.invariants import is_marked, open_round
from health.compaction.matching import Question, fused, with_neighbours
from health.compaction.ports import Asking, Attempt, Embed, Embedded, Kit, Need, Read, unchanged
from health.compaction.sources import Frame, Source, is_lines, leaning, sources_of
from health.compaction.strategies.passage_view import View
from health.compaction.units import ContextState, Role, Unit, total

TAIL_SHARE = 0.03
OPEN_SHARE = 0.5
EXPONENT = 0.55
LINE_TOKENS = 3
MARGIN_TOKENS = 40
TASK_WEIGHT = 20.0
LAST_MESSAGE_WEIGHT = 10.0
OWN_ENOUGH = 8.0
RULE_BONUS = 8.0
PRIOR = {Role.USER: 1.3, Role.ASSISTANT: 1.0, Role.TOOL: 1.0}
MATCH = {Role.USER: 1.0, Role.ASSISTANT: 1.0, Role.TOOL: 0.15}
SHARE_POWER = 0.3
ALARM_BONUS = 8.0
ALARM = re.compile(r"\b(?:ERROR|FATAL|CRITICAL|FAILED|[A-Z]\w*(?:Error|Exception))\b|^E  |\bTraceback\b")


def select_passages(state: ContextState, kit: Kit) -> Asking:
    """Fill the context with passages up to `fill` of the limit."""
    target = int(state.config.select_passages.fill * state.limit)
    if state.estimated_tokens <= target:
        return unchanged(state, "Everything fits.")
    frame = framed(state, kit, target_tokens=target)
    sources = sources_of(state.units, frame)
    if frame.room <= 0 or not sources:
        return unchanged(state, "What must stay leaves no room for passages.")
    order = yield from chosen_order(sources, state, kit, frame)
    view = View(state=state, kit=kit, frame=frame, sources=sources)
    units = view.fitting(order, budget_tokens=target)
    if units is None:
        return unchanged(state, "Passages would not make it smaller.")
    return Attempt(
        state=state.having(units),
        changed=True,
        reads=reads_of(state.units, frame.kept),
        shortens_open=bool(frame.yielding),
    )


def framed(state: ContextState, kit: Kit, *, target_tokens: int) -> Frame:
    """What stays as it is (all that is protected, and the newest cuts), and the tokens left beside it."""
    pieces = cuts(state.units)
    guarded = [cut for cut in pieces if cut.protected]
    yielding = yielding_results(state, target_tokens=target_tokens)
    texts = sum(kit.counter.count([unit.content for unit in yielding]))
    free = target_tokens - state.overhead_tokens - sum(cut.tokens for cut in guarded) + texts
    newest = tail(pieces, budget_tokens=int(free * TAIL_SHARE))
    shortened = frozenset(unit.id for unit in yielding)
    return Frame(
        kept=(ids_of(guarded) | ids_of(newest)) - shortened,
        yielding=shortened,
        room=free - sum(cut.tokens for cut in newest),
    )


def yielding_results(state: ContextState, *, target_tokens: int) -> tuple[Unit, ...]:
    """The results of the open round, where they would leave less than half of the context to all the rest."""
    opened = open_round(state.units)
    if total(opened) <= OPEN_SHARE * (target_tokens - state.overhead_tokens):
        return ()
    return tuple(unit for unit in opened if unit.role is Role.TOOL and not is_marked(unit))


def tail(pieces: Sequence[Cut], *, budget_tokens: int) -> list[Cut]:
    """The newest unprotected cuts that fit the budget whole, without a gap."""
    found: list[Cut] = []
    for cut in reversed(pieces):
        if cut.protected:
            continue
        budget_tokens -= cut.tokens
        if budget_tokens < 0:
            break
        found.append(cut)
    return found


def reads_of(units: Sequence[Unit], kept: Collection[str]) -> tuple[Read, ...]:
    """Every chunk of what is not kept was weighed: all of it was read."""
    return tuple(
        Read(source_id=one, read=len(unit.content), total=len(unit.content))
        for unit in units
        if unit.id not in kept
        for one in unit.sources
    )


def chosen_order(
    sources: Sequence[Source], state: ContextState, kit: Kit, frame: Frame
) -> Generator[Need, Any, list[tuple[int, int]]]:
    """(source, chunk) pairs, the most needed first."""
    places = [(at, number) for at, source in enumerate(sources) for number in range(len(source.chunks))]
    texts = [sources[at].chunks[number].text for at, number in places]
    features = Features(texts, from_tool=[sources[at].role is Role.TOOL for at, _ in places])
    sizes = kit.counter.count(texts)
    bonus = yield from asked_for(texts, sizes, features, state)
    leans = leaning(sources, places)
    priors = priors_of([sources[at].role for at, _ in places], sizes)
    labels = [label_tokens(state.units[source.unit_at], frame, kit) for source in sources]
    candidates = [
        Candidate(
            tokens=sizes[one] + GAP_TOKENS,
            bonus=float(bonus[one]) * min(1.0, features.own(one) / OWN_ENOUGH) * MATCH[sources[at].role]
            + (ALARM_BONUS if sources[at].role is Role.TOOL and ALARM.search(texts[one]) else 0.0),
            prior=priors[sources[at].role],
            group=at,
            label=labels[at],
            leans_on=leans[one],
        )
        for one, (at, number) in enumerate(places)
    ]
    chooser = Chooser(candidates, features, exponent=EXPONENT)
    return [places[one] for one in chooser.choose(frame.room - MARGIN_TOKENS)]


def priors_of(roles: Sequence[Role], sizes: Sequence[int]) -> dict[Role, float]:
    """Whoever says little says it on purpose: a few words of the user between long results weigh more."""
    share: dict[Role, float] = dict.fromkeys(PRIOR, 0.0)
    for role, size in zip(roles, sizes, strict=True):
        share[role] += size / sum(sizes)
    return {role: PRIOR[role] * (3 * max(share[role], 0.01)) ** -SHARE_POWER for role in share}


def label_tokens(unit: Unit, frame: Frame, kit: Kit) -> int:
    """What a message costs beside its text, once something of it stands."""
    if unit.id in frame.yielding:
        return 0  # it stands in any case
    if is_lines(unit):
        return LINE_TOKENS
    return kit.counter.per_message + unit.image_tokens + (kit.tokens(unit.attached) if unit.attached else 0)


def asked_for(
    texts: Sequence[str], sizes: Sequence[int], features: Features, state: ContextState
) -> Generator[Need, Any, Any]:
    """What each chunk is worth for what is asked: for the task, and less for the last user message."""
    bonus = np.zeros(len(texts))
    for text, weight in ((state.task, TASK_WEIGHT), (last_said(state), LAST_MESSAGE_WEIGHT)):
        question = Question(text, features)
        if not question.specific:
            continue
        scores = [question.bm25(sizes)]
        if text == state.task:
            answer = yield Embed(texts=(text, *texts))
            if isinstance(answer, Embedded):
                scores.append((answer.vectors[1:] @ answer.vectors[0]).astype(float))
        bonus += weight * question.specific * with_neighbours(fused(*scores))
    return bonus


def last_said(state: ContextState) -> str:
    said = (unit.content for unit in reversed(state.units) if unit.role is Role.USER and not unit.inserted)
    return next(said, "")[:2000]
