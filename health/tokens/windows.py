"""Learns a model's window from prompts that were read, refused, or cut silently. PURE.

All numbers are tokens. `accepted` and `cut_read` are reported by the provider; `refused` and `cut_sent` are estimates,
unless the provider named them in a refusal. The clock is passed in.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

# After this time a bound is no longer used: the server may have restarted with another window.
DOUBTED_AFTER = timedelta(days=1)
# A server cuts a prompt to about its window. A report of less than this share of the largest prompt that it ever read
# is of something else, for example the uncached part of the prompt.
LEAST_SHARE_OF_A_CUT = 0.5
# Nor is repeatedly a report of less than this share of the request a cut.
LEAST_SHARE_OF_THE_REQUEST = 0.2
# If a request grew by the first share of itself, its report is used only if it grew by the second share of the growth.
GREW, FOLLOWED = 0.1, 0.25
# Reports of the same prompt may differ by this share.
SAME_SHARE = 0.02
# If a request is estimated above a known window, and its report is within this share of the window, it was cut.
AT_THE_WINDOW = 0.02
# If a report is below its estimate by this many times the estimate's error, and at least by this share, the server's
# window is read again.
SHORT_ERRORS, SHORT_SHARE = 3, 0.15
# The plausible reports that are needed before a report smaller than the last one is suspect.
ENOUGH_REPORTS = 3
WORDS_CHARS = 300


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """What was learned of one LLM. `window` was named by a refusal and accepted; `named` is not accepted yet."""

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
    """A request refused as too long: its prompt, the maximum of its answer, the window that the refusal named."""

    prompt: int
    answer: int = 0
    named: int | None = None
    words: str = ""


@dataclass(frozen=True, kw_only=True)
class Report:
    """The reported and the estimated tokens of one prompt. `error` is a share of the estimate."""

    reported: int
    estimated: int
    error: float


def ceiling(bounds: Bounds, now: datetime, *, at_most: bool = False) -> int | None:
    """The most tokens of prompt and answer by what was learned; None if nothing is known, or no longer.

    `at_most`: just below the smallest refused request, in place of a safer guess.
    """
    found = []
    if bounds.refused and not is_doubted(bounds.refused_at, now):
        # Midway between the largest read and the smallest refused prompt; without the former, half of the latter.
        read = min(bounds.accepted or 0, bounds.refused)
        guess = (read + bounds.refused) // 2 if read > bounds.refused // 2 else bounds.refused // 2
        found.append(bounds.refused - 1 if at_most else guess)
    if bounds.window and not is_doubted(bounds.refused_at, now):
        found.append(bounds.window)
    if bounds.cut_sent and not is_doubted(bounds.cut_at, now):
        found.append(min(bounds.cut_sent, bounds.cut_read or bounds.cut_sent))
    return min(found, default=None)


def after_refusal(bounds: Bounds, said: Refused, *, now: datetime) -> tuple[Bounds, int | None]:
    """The bounds after a refusal; and the window, if it named a plausible one.

    A number is plausible between the largest read and the smallest refused prompt, or if it is named a second time.
    A request smaller than a prompt that was read today was refused for another reason, so nothing is learned.
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
    """The bounds after a prompt was read whole: it removes the bounds that it exceeds."""
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
    """The server has another window: forget the bounds. That its reports omit something still holds."""
    return Bounds(reports_part=bounds.reports_part)


def is_suspect(report: Report, *, before: Report | None, window: int | None, reports: int) -> bool:
    """May the server have cut the prompt? `before` is the largest report of an uncut prompt of the same conversation.

    Yes if the report did not grow although the request did, by more than the estimate's error; or if it is at a window
    that the request is estimated to exceed. `reports` is the number of plausible ones so far.
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
    """Is the report far below the estimate? That alone is not suspect, as estimates may be wrong; but the prompt was
    cut if the request exceeds the server's window, read again. This finds cuts after a compaction, too.
    """
    return report.reported < report.estimated * (1 - max(SHORT_ERRORS * report.error, SHORT_SHARE))


def exceeds(report: Report, window: int | None) -> bool:
    """Is the request larger than this window, even with the estimate's error?"""
    return window is not None and report.estimated * (1 - report.error) > window


def teaches(report: Report, *, before: Report | None) -> bool:
    """May estimates be corrected by this report? Not if it hardly grew with its request."""
    if before is None:
        return True
    grew = report.estimated - before.estimated
    return grew <= GREW * report.estimated or report.reported - before.reported >= FOLLOWED * grew


def is_of_a_part(report: Report, bounds: Bounds) -> bool:
    """Is the report too small for a cut? Then this server omits something from its reports."""
    far_below = report.reported < LEAST_SHARE_OF_A_CUT * (bounds.accepted or 0)
    return far_below or report.reported < LEAST_SHARE_OF_THE_REQUEST * report.estimated


def after_suspicion(bounds: Bounds, report: Report, *, window: int | None, now: datetime) -> Bounds:
    """The bounds after one more suspicion. `window` is the server's window, read again; None if it does not say.

    A cut is confirmed by a window that the request exceeds, or by a second suspicion. A server whose window has room
    for the request, or that reports too little a second time, reports only a part: its reports are no longer used.
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
