"""What use teaches about a model's window: prompts that were read, refused, or cut without a word. PURE.

Tokens throughout. `accepted` and `cut_read` are reported by the provider; `refused` and `cut_sent` are estimated,
unless the provider named them in a refusal. The clock is handed in.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

# After this long a bound is doubted: the server may have been started again with another window.
DOUBTED_AFTER = timedelta(days=1)
# What a server reads of a prompt that it cuts is near its window. A report of less than this share of the largest
# prompt that it ever read is of something else: the part of the prompt that was not cached, for example.
LEAST_SHARE_OF_A_CUT = 0.5
# Nor does a cut explain a report of less than this share of what was sent, turn after turn.
LEAST_SHARE_OF_THE_REQUEST = 0.2
# Where a request grew by this share of itself, its report must have grown by that share of the growth to teach.
GREW, FOLLOWED = 0.1, 0.25
# Reports of one prompt differ by this much, whatever the estimate's error.
SAME_SHARE = 0.02
# A report within this share of a known window, of a request that is estimated above it, is of a cut one.
AT_THE_WINDOW = 0.02
# A report that is below its estimate by so many times the estimate's error, and by that share at least, makes the
# server's window worth another look.
SHORT_ERRORS, SHORT_SHARE = 3, 0.15
# So many plausible reports are needed before a smaller report than the last one counts against a server.
ENOUGH_REPORTS = 3
WORDS_CHARS = 300


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """What is known of one LLM. `window` was named by a refusal and believed; `named` is not believed yet."""

    accepted: int | None = None
    accepted_at: datetime | None = None
    refused: int | None = None
    refused_at: datetime | None = None
    words: str = ""
    window: int | None = None
    named: int | None = None
    cut_sent: int | None = None
    cut_read: int | None = None
    cut_at: datetime | None = None
    suspicions: int = 0
    reports_part: bool = False


@dataclass(frozen=True, kw_only=True)
class Refused:
    """A request that was refused as too long: its prompt, the answer it asked for, the number that was named."""

    prompt: int
    answer: int = 0
    named: int | None = None
    words: str = ""


@dataclass(frozen=True, kw_only=True)
class Report:
    """What a provider reported of one prompt, and what was estimated of it. `error` is a share of the estimate."""

    reported: int
    estimated: int
    error: float


def ceiling(bounds: Bounds, now: datetime, *, at_most: bool = False) -> int | None:
    """The most tokens that prompt and answer may have by what was learned; None where nothing holds any more.

    `at_most`: what has not been refused yet, in place of a guess that is safer.
    """
    found = []
    if bounds.refused and not is_doubted(bounds.refused_at, now):
        # Between what was read and what was refused; from nothing but a refusal, far below it.
        read = min(bounds.accepted or 0, bounds.refused)
        guess = (read + bounds.refused) // 2 if read > bounds.refused // 2 else bounds.refused // 2
        found.append(bounds.refused - 1 if at_most else guess)
    if bounds.window and not is_doubted(bounds.refused_at, now):
        found.append(bounds.window)
    if bounds.cut_sent and not is_doubted(bounds.cut_at, now):
        found.append(min(bounds.cut_sent, bounds.cut_read or bounds.cut_sent))
    return min(found, default=None)


def after_refusal(bounds: Bounds, said: Refused, *, now: datetime) -> tuple[Bounds, int | None]:
    """What a refusal teaches; and the window, where it named one that can be believed.

    A number is believed where it lies between what was read and what was refused, or where it is named again.
    A request smaller than a prompt that was read today was refused for another reason, and teaches nothing.
    """
    whole = said.prompt + said.answer
    read = None if is_doubted(bounds.accepted_at, now) else bounds.accepted
    smallest = whole if is_doubted(bounds.refused_at, now) else min(whole, bounds.refused or whole)
    if said.named and ((read or 0) <= said.named <= smallest or said.named == bounds.named):
        words = said.words[:WORDS_CHARS]
        learned = replace(bounds, window=said.named, named=None, refused=None, refused_at=now, words=words)
        return (learned if (read or 0) <= said.named else replace(learned, accepted=None)), said.named
    if read and whole <= read:
        return replace(bounds, named=said.named), None
    return replace(bounds, refused=smallest, refused_at=now, words=said.words[:WORDS_CHARS], named=said.named), None


def after_report(bounds: Bounds, reported: int, *, now: datetime) -> Bounds:
    """A prompt was read whole. A larger one than a bound says makes an end of that bound."""
    learned = bounds
    if bounds.refused and reported >= bounds.refused:
        learned = replace(learned, refused=None, named=None)
    if bounds.window and reported > bounds.window:
        learned = replace(learned, window=None)
    if bounds.cut_read and reported > bounds.cut_read * (1 + SAME_SHARE):
        learned = replace(learned, cut_sent=None, cut_read=None, cut_at=None)
    if bounds.accepted is None or reported > bounds.accepted or is_doubted(bounds.accepted_at, now):
        learned = replace(learned, accepted=reported, accepted_at=now)
    return learned


def after_reload(bounds: Bounds) -> Bounds:
    """The server has another window now: what the one before taught holds no more. What it leaves out of its reports
    has nothing to do with that."""
    return Bounds(reports_part=bounds.reports_part)


def is_suspect(report: Report, *, before: Report | None, window: int | None, reports: int) -> bool:
    """May the server have read only a part? `before` is the largest whole report of the same conversation.

    Because the report did not grow although the request did, by more than estimates are wrong; or because it ends
    at a window that the request is estimated to exceed. `reports` are the plausible ones so far.
    """
    too_long = window is not None and report.estimated > window * (1 + report.error)
    if window and too_long and window * (1 - AT_THE_WINDOW) <= report.reported <= window:
        return True
    if before is None:
        return False
    grew = report.estimated - before.estimated
    if grew > 0 and report.reported < LEAST_SHARE_OF_THE_REQUEST * report.estimated:
        return True
    has_grown = grew > report.error * report.estimated
    return reports >= ENOUGH_REPORTS and has_grown and report.reported <= before.reported


def falls_short(report: Report) -> bool:
    """Is it far below what was sent? No suspicion by itself: estimates may be wrong. It is a cut where the server,
    asked again, has a window that the request exceeds. After a compaction no earlier report can tell of one.
    """
    return report.reported < report.estimated * (1 - max(SHORT_ERRORS * report.error, SHORT_SHARE))


def exceeds(report: Report, window: int | None) -> bool:
    """Is the request larger than this window, however wrong its estimate is?"""
    return window is not None and report.estimated * (1 - report.error) > window


def teaches(report: Report, *, before: Report | None) -> bool:
    """May estimates be corrected by this report? Not where it hardly grew with its request."""
    if before is None:
        return True
    grew = report.estimated - before.estimated
    return grew <= GREW * report.estimated or report.reported - before.reported >= FOLLOWED * grew


def is_of_a_part(report: Report, bounds: Bounds) -> bool:
    """A report so small that no cut explains it: this server leaves something out of what it reports."""
    far_below = report.reported < LEAST_SHARE_OF_A_CUT * (bounds.accepted or 0)
    return far_below or report.reported < LEAST_SHARE_OF_THE_REQUEST * report.estimated


def after_suspicion(bounds: Bounds, report: Report, *, window: int | None, now: datetime) -> Bounds:
    """One more suspicion. `window` is what the server says of its window, read again; None: it does not say.

    Confirmed by a window that the request exceeds, or by a second suspicion. A server whose window has room for the
    request, or that reports too little a second time, reports only a part: what it reports is not looked at any more.
    """
    again = bounds.suspicions > 0
    fits = window is not None and report.estimated * (1 + report.error) <= window
    too_long = exceeds(report, window)
    if fits or (again and is_of_a_part(report, bounds) and not too_long):
        return replace(bounds, reports_part=True, suspicions=0)
    if too_long or again:
        read = max(report.reported, bounds.accepted or 0)
        return replace(bounds, cut_sent=report.estimated, cut_read=read, cut_at=now, suspicions=0)
    return replace(bounds, suspicions=bounds.suspicions + 1)


def is_doubted(at: datetime | None, now: datetime) -> bool:
    return at is None or now - at > DOUBTED_AFTER
