"""What a report or a refusal teaches about the window of an LLM: every write. The rules are `health.tokens.windows`."""

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
from health.tokens.windows import (
    Refused,
    Report,
    after_refusal,
    after_report,
    after_suspicion,
    is_suspect,
)

logger = logging.getLogger(__name__)
# An estimate that nothing has corrected yet may be wrong by this share, a corrected one by at least the other.
UNCALIBRATED_ERROR, LEAST_ERROR = 0.25, 0.03
# A report is written down where it is larger than the largest one by so much, or where the window is not known.
WORTH_KEEPING = 1.05
# A new report is compared with so many earlier ones of the conversation.
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
    """Let a window that a refusal named be in force. An admin's number stays; the guard goes by the lower of both."""
    llm.refresh_from_db(from_queryset=LLM.objects.select_for_update())
    if not (llm.context_length and llm.context_length_source == WindowSource.ADMIN):
        _set_window(llm, window, WindowSource.REFUSAL)


def _set_window(llm: LLM, window: int | None, source: str) -> None:
    """Write the window down, with the ceiling of a small window, which follows the window as long as nobody wrote a
    ceiling down."""
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
    """May the server have read only a part of this request? What is suspected teaches nothing."""
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
    """The largest report of the same LLM, course and view that nothing was suspected of; of equal ones the oldest."""
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
    """The server read the whole of a prompt of this many tokens. Mostly that is no news, and nothing is written."""
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
    """The server may have read only a part; `window` is what it says of its window now. True where that is confirmed.

    The generation is marked, so that a person can see which answer was given to a part of the prompt.
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
    """Everything that use taught about this LLM's window; what a server or a person said stays. Who did it is told in
    the LLM's history in the admin."""
    llm.refresh_from_db(from_queryset=LLM.objects.select_for_update())
    LlmBounds.objects.filter(llm=llm).delete()
    if llm.context_length_source == WindowSource.REFUSAL:
        _set_window(llm, None, "")
    if by is not None:
        said = _("Made what was learned of its window forgotten.")
        LogEntry.objects.log_actions(by.pk, [llm], CHANGE, change_message=said, single_object=True)


@transaction.atomic
def forget_model(*, llm: LLM) -> None:
    """Another model answers in its place, or another server: nothing holds that was read or learned of the one before.
    What a person or a file says of it stays."""
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


# --- What a report teaches about estimates: one more sample for its LLM ---
@transaction.atomic
def learn_from_usage(*, llm: LLM, estimate: RequestEstimate, reported: int) -> None:
    """`reported` is the prompt tokens of the provider's usage for the estimated request.

    The margin is no part of what was thought likely, so it is no error of it.
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
