"""Stores what reports and refusals show about an LLM's window. The rules are in `health.tokens.windows`."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from operator import attrgetter
from typing import Any

from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import BigIntegerField, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from dialogs.context.estimate import RequestEstimate
from dialogs.llms.guard import bounds_of, is_window_as_loaded, kind_of
from dialogs.llms.reads import configured
from dialogs.llms.writes.providers import small_window_ceiling
from dialogs.models import LLM, Generation, LlmBounds
from dialogs.models.llm import ToolCalling, WindowSource
from dialogs.transcript.writes.dialog_row import lock, save
from dialogs.turns.writes.events import Code, log
from dominds.prepared import prepared
from health.models import LlmCalibration
from health.monitor.levels import context_window
from health.tokens.calibration import Calibration, learn
from health.tokens.windows import Refused, Report, after_refusal, after_report, after_suspicion, is_suspect

logger = logging.getLogger(__name__)
# The error of an estimate, as a share: of one that no report has corrected yet; at least, of a corrected one.
UNCALIBRATED_ERROR, LEAST_ERROR = 0.25, 0.03
# A report is stored if it is this many times the largest one, or if the window is not known.
WORTH_KEEPING = 1.05
# A new report is compared with this many earlier ones of the conversation.
REPORTS_LOOKED_AT = 50


@transaction.atomic
def learn_from_refusal(generation: Generation, said: Refused) -> None:
    """The provider refused this request as too long. LM Studio's window comes from its own API only."""
    llm = generation.llm
    if llm is None or is_window_as_loaded(llm):
        return
    row = _locked(llm)
    known, window = after_refusal(row.known, said, now=timezone.now())
    if window is not None:
        _take_window(llm, window)
    row.known = known
    row.save()
    if window is not None:
        log(Code.WINDOW_LEARNED, generation.dialog, limit=window, words=said.words[:300])


def _take_window(llm: LLM, window: int) -> None:
    """Use the window that a refusal named. An admin's number stays; the guard uses the lower of both."""
    llm.refresh_from_db(from_queryset=LLM.objects.select_for_update())
    if not (llm.context_length and llm.context_length_source == WindowSource.ADMIN):
        _set_window(llm, window, WindowSource.REFUSAL)


def _set_window(llm: LLM, window: int | None, source: str) -> None:
    """Store the window, and the ceiling of a small window unless a person set one."""
    if llm.optimal_max_tokens in (None, small_window_ceiling(llm.context_length)):
        llm.optimal_max_tokens = small_window_ceiling(window)
    llm.context_length, llm.context_length_source = window, source
    llm.save(update_fields=["context_length", "context_length_source", "optimal_max_tokens"])


def report_of(generation: Generation, *, reported: int, estimated: int) -> Report:
    return Report(reported=reported, estimated=estimated, error=_error(generation.llm))


def _error(llm: LLM | None) -> float:
    known = llm.calibration.known if llm and hasattr(llm, "calibration") else None
    if not isinstance(known, Calibration) or not known.is_trusted:
        return UNCALIBRATED_ERROR
    return max(LEAST_ERROR, known.error_percent / 100)


def is_cut_suspected(generation: Generation, report: Report, before: Report | None) -> bool:
    """May the server have cut this request? Nothing is learned from a suspected report."""
    llm = generation.llm
    if llm is None or not kind_of(llm).reports_truly or bounds_of(llm).reports_part:
        return False
    known = llm.calibration.known if hasattr(llm, "calibration") else None
    return is_suspect(
        report,
        before=before,
        window=context_window(configured(llm)),
        reports=len(known.samples) if isinstance(known, Calibration) else 0,
    )


def largest_before(generation: Generation) -> Report | None:
    """The largest unsuspected report of the same LLM, course and view; of equal ones the oldest."""
    found: list[Report] = []
    for manifest, reported in _reports(generation.course_id, generation.llm_id, generation.pk):
        if reported is None or _shown(manifest) != _shown(generation.manifest):
            break
        if manifest.get("estimated") and not manifest.get("suspect"):
            found.append(Report(reported=reported, estimated=manifest["estimated"], error=0.0))
    return max(reversed(found), key=attrgetter("reported"), default=None)


def _shown(manifest: Mapping[str, Any]) -> tuple[Any, Any]:
    return manifest.get("view"), manifest.get("kept")


@prepared(BigIntegerField(), BigIntegerField(), BigIntegerField())
def _reports(course_id: Any, llm_id: Any, before: Any) -> QuerySet[Generation, Any]:
    rows = Generation.objects.filter(course=course_id, llm=llm_id, pk__lt=before, prompt_tokens__isnull=False)
    return rows.order_by("-number").values_list("manifest", "prompt_tokens")[:REPORTS_LOOKED_AT]


def learn_from_report(generation: Generation, *, reported: int) -> None:
    """The server read a whole prompt of this many tokens. Mostly that is not new, and nothing is stored."""
    llm = generation.llm
    if llm is None:
        return
    before, window = bounds_of(llm), context_window(configured(llm))
    if window and reported <= window and reported < WORTH_KEEPING * (before.accepted or 1) and not before.refused:
        return
    _learn_read(llm, reported, window)


@transaction.atomic
def _learn_read(llm: LLM, reported: int, window: int | None) -> None:
    row = _locked(llm)
    row.known = after_report(row.known, reported, now=timezone.now())
    row.save()
    if window and reported > window and llm.context_length_source == WindowSource.REFUSAL:
        llm.refresh_from_db(from_queryset=LLM.objects.select_for_update())
        _set_window(llm, None, "")


@transaction.atomic
def suspect_cut(generation: Generation, report: Report, *, window: int | None) -> bool:
    """The server may have cut the prompt; `window` is what it says of its window now. True if that is confirmed.

    The generation is marked, so that a person can see which answer was made from a part of the prompt.
    """
    llm = generation.llm
    if llm is None:
        return False
    row = _locked(llm)
    before = row.known
    row.known = after_suspicion(before, report, window=window, now=timezone.now())
    row.save()
    if row.reports_part:
        # Reports of a server that cuts prompts do not correct estimates either.
        LlmCalibration.objects.filter(llm=llm).delete()
    is_cut = row.cut_at is not None and row.cut_at != before.cut_at
    generation.manifest["suspect"] = True
    if is_cut:
        generation.manifest["cut"] = True
        # The transcript marks the answer, which browsers show already.
        save(lock(generation.dialog))
        log(Code.PROMPT_CUT, generation.dialog, estimated=report.estimated, limit=window, read=report.reported)
        logger.warning(
            "Dialog %s: the server read %s of ≈%s tokens", generation.dialog_id, report.reported, report.estimated
        )
    generation.save(update_fields=["manifest"])
    return is_cut


@transaction.atomic
def forget(*, llm: LLM, by: User | None = None) -> None:
    """Delete all that was learned about this LLM's window; what a server or a person said stays. The LLM's history in
    the admin says who did it."""
    llm.refresh_from_db(from_queryset=LLM.objects.select_for_update())
    LlmBounds.objects.filter(llm=llm).delete()
    if llm.context_length_source == WindowSource.REFUSAL:
        _set_window(llm, None, "")
    if by is not None:
        said = _("Made what was learned of its window forgotten.")
        LogEntry.objects.log_actions(by.pk, [llm], CHANGE, change_message=said, single_object=True)


@transaction.atomic
def forget_model(*, llm: LLM) -> None:
    """Another model or server answers in its place: delete all that was read or learned about the former one. What a
    person or a file says stays."""
    forget(llm=llm)
    LlmCalibration.objects.filter(llm=llm).delete()
    if llm.context_length_source == WindowSource.SERVER:
        _set_window(llm, None, "")
    llm.detected_context_length = llm.limits_read_at = None
    llm.prefill = ""
    if llm.tool_calling == ToolCalling.REFUSED:
        llm.tool_calling = ToolCalling.AUTO
    llm.save(update_fields=["detected_context_length", "limits_read_at", "prefill", "tool_calling"])


def _locked(llm: LLM) -> LlmBounds:
    row, _made = LlmBounds.objects.select_for_update().get_or_create(llm=llm)
    llm.bounds = row
    return row


# --- A report's sample for the calibration of its LLM ---
@transaction.atomic
def learn_from_usage(*, llm: LLM, estimate: RequestEstimate, reported: int) -> None:
    """`reported` is the prompt tokens of the provider's usage for the estimated request.

    The margin is not part of the predicted tokens, so it does not count as an error.
    """
    row, _made = LlmCalibration.objects.select_for_update().get_or_create(llm=llm)
    after = learn(
        row.known_of(estimate.counter), estimate.raw, reported=reported, predicted=estimate.tokens - estimate.margin
    )
    if isinstance(after, Calibration):
        row.known, row.counter = after, estimate.counter
        row.save(update_fields=["samples", "counter", "updated_at"])
    # The next estimate with this LLM object uses what was learned.
    llm.calibration = row
