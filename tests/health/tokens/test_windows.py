"""What use teaches about a model's window: each rule of `health.tokens.windows`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from health.tokens.windows import (
    Bounds,
    Refused,
    Report,
    after_refusal,
    after_report,
    after_suspicion,
    ceiling,
    exceeds,
    falls_short,
    is_suspect,
    teaches,
)

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
YESTERDAY = NOW - timedelta(days=1, hours=1)


def report(reported: int, estimated: int, error: float = 0.03) -> Report:
    return Report(reported=reported, estimated=estimated, error=error)


class TestARefusal:
    def test_a_number_between_what_was_read_and_what_was_refused_is_the_window(self) -> None:
        known, window = after_refusal(
            Bounds(accepted=8000, accepted_at=NOW), Refused(prompt=8300, named=8192, words="too long"), now=NOW
        )

        assert window == 8192
        assert (known.refused, known.words, known.refused_at) == (None, "too long", NOW)

    def test_a_number_above_what_was_refused_before_is_not_believed_at_once(self) -> None:
        _known, window = after_refusal(
            Bounds(refused=9000, refused_at=NOW), Refused(prompt=20_000, named=16_384), now=NOW
        )

        assert window is None

    def test_the_answer_that_was_asked_for_counts_with_the_prompt(self) -> None:
        _known, window = after_refusal(Bounds(), Refused(prompt=5000, answer=4000, named=8192), now=NOW)

        assert window == 8192

    @pytest.mark.parametrize("named", [9000, 7000])
    def test_a_number_outside_the_bounds_is_believed_when_it_is_named_again(self, named: int) -> None:
        said = Refused(prompt=8300, named=named)

        once, first = after_refusal(Bounds(accepted=8000, accepted_at=NOW), said, now=NOW)
        _twice, second = after_refusal(once, said, now=NOW)

        assert (first, second) == (None, named)

    def test_a_window_below_what_was_read_takes_that_bound_back(self) -> None:
        once, _first = after_refusal(Bounds(accepted=8000, accepted_at=NOW), Refused(prompt=8300, named=4096), now=NOW)

        known, window = after_refusal(once, Refused(prompt=8300, named=4096), now=NOW)

        assert (window, known.accepted) == (4096, None)

    def test_without_a_number_only_the_bound_moves(self) -> None:
        known, window = after_refusal(Bounds(accepted=7900, accepted_at=NOW), Refused(prompt=8300), now=NOW)

        assert window is None
        assert ceiling(known, NOW) == (7900 + 8300) // 2

    def test_the_smallest_refused_request_is_the_bound(self) -> None:
        known, _window = after_refusal(Bounds(refused=9000, refused_at=NOW), Refused(prompt=12_000), now=NOW)

        assert known.refused == 9000

    def test_a_request_smaller_than_what_was_read_today_teaches_nothing(self) -> None:
        before = Bounds(accepted=8000, accepted_at=NOW)

        assert after_refusal(before, Refused(prompt=500), now=NOW) == (before, None)

    def test_what_was_read_yesterday_is_doubted(self) -> None:
        known, _window = after_refusal(Bounds(accepted=8000, accepted_at=YESTERDAY), Refused(prompt=5000), now=NOW)

        assert known.refused == 5000

    def test_from_a_refusal_alone_the_bound_is_far_below_it(self) -> None:
        """A client may bring along a history of many windows: three halvings must reach the smallest of them."""
        assert ceiling(Bounds(refused=30_000, refused_at=NOW), NOW) == 15_000


class TestABound:
    def test_it_is_doubted_after_a_day(self) -> None:
        assert ceiling(Bounds(refused=8300, refused_at=YESTERDAY), NOW) is None
        assert ceiling(Bounds(cut_sent=9000, cut_read=8100, cut_at=YESTERDAY), NOW) is None

    def test_a_larger_report_makes_an_end_of_it(self) -> None:
        known = after_report(Bounds(accepted=7900, refused=8300, refused_at=NOW), 8400, now=NOW)

        assert (known.accepted, known.refused) == (8400, None)

    def test_after_a_cut_the_guard_uses_the_lower_of_both(self) -> None:
        assert ceiling(Bounds(cut_sent=9000, cut_read=8100, cut_at=NOW), NOW) == 8100

    def test_a_smaller_report_changes_nothing(self) -> None:
        before = Bounds(accepted=7900, accepted_at=NOW)

        assert after_report(before, 500, now=NOW) == before


class TestASuspicion:
    @pytest.mark.parametrize(
        ("found", "before", "window", "reports", "suspect"),
        [
            ((8090, 8600), (8100, 8150), None, 5, True),
            ((8500, 8600), (8100, 8150), None, 5, False),  # it grows
            ((8100, 8300), (8100, 8150), None, 5, False),  # growth within the estimate's error
            ((8090, 9600), (8100, 8150), None, 2, False),  # before three reports the estimate is not known well enough
            # At the end of a known window that the request exceeds it is suspect at once.
            ((8100, 9000), None, 8192, 0, True),
            ((4000, 9000), None, 8192, 0, False),
            # What a server leaves of a prompt that it cuts in the middle may be half of its window.
            ((4000, 9000), (8100, 8150), 8192, 5, True),
            # A fifth of its request, before any calibration.
            ((190, 1000), (180, 800), None, 0, True),
        ],
    )
    def test_a_report_that_does_not_grow_with_its_request_is_suspect(
        self,
        found: tuple[int, int],
        before: tuple[int, int] | None,
        window: int | None,
        reports: int,
        suspect: bool,
    ) -> None:
        earlier = report(*before) if before else None

        assert is_suspect(report(*found), before=earlier, window=window, reports=reports) is suspect

    def test_a_report_far_below_a_calibrated_estimate_is_worth_a_look_unless_an_error_explains_it(self) -> None:
        assert falls_short(report(1265, 2186))
        assert not falls_short(report(1900, 2186))
        assert not falls_short(report(1265, 2186, error=0.25))
        assert exceeds(report(1265, 2186), 2048)
        assert not exceeds(report(1265, 2186, error=0.1), 2048)
        assert not exceeds(report(1265, 2186), None)

    def test_a_second_one_confirms_it(self) -> None:
        bounds = Bounds(accepted=8150, accepted_at=NOW)

        once = after_suspicion(bounds, report(8090, 8600), window=None, now=NOW)
        twice = after_suspicion(once, report(8120, 9000), window=None, now=NOW)

        assert (once.suspicions, once.cut_at) == (1, None)
        assert (twice.cut_sent, twice.cut_read, twice.cut_at) == (9000, 8150, NOW)

    def test_a_window_read_again_confirms_it_at_once_or_means_that_the_server_reports_only_a_part(self) -> None:
        exceeded = after_suspicion(Bounds(accepted=3000), report(2545, 3900), window=2600, now=NOW)
        roomy = after_suspicion(Bounds(accepted=3000), report(2900, 3900), window=8192, now=NOW)

        assert exceeded.cut_at == NOW
        assert (roomy.reports_part, roomy.cut_at) == (True, None)

    def test_reports_far_too_small_for_a_cut_are_of_a_part(self) -> None:
        """A server that leaves out what it had in its cache reports a few hundred tokens of a long prompt."""
        bounds = Bounds(accepted=6000, accepted_at=NOW)

        once = after_suspicion(bounds, report(300, 6400), window=None, now=NOW)
        twice = after_suspicion(once, report(280, 6800), window=None, now=NOW)

        assert (twice.reports_part, twice.cut_at) == (True, None)

    def test_what_hardly_grew_with_its_request_corrects_no_estimate(self) -> None:
        assert not teaches(report(190, 461), before=report(180, 269))
        assert teaches(report(400, 461), before=report(230, 269))
        assert teaches(report(190, 461), before=None)
