"""How a share of the window is written."""

from __future__ import annotations

import pytest

from health.monitor.levels import clamped, percent_text


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0, "0.0 %"),
        (0.001, "0.1 %"),
        (0.0942, "9.4 %"),
        (0.09949, "9.9 %"),
        (0.0996, "10 %"),  # rounds up to ten, and ten has no decimal
        (0.25, "25 %"),
        (0.505, "51 %"),
        (1.0, "100 %"),
        (1.07, "107 %"),  # more than the window is shown as it is
    ],
)
def test_a_share_below_ten_percent_has_one_decimal(share: float, text: str) -> None:
    assert percent_text(share) == text


@pytest.mark.parametrize(("share", "drawn"), [(-0.1, 0.0), (0.3, 0.3), (1.4, 1.0)])
def test_a_drawing_never_leaves_its_frame(share: float, drawn: float) -> None:
    assert clamped(share) == drawn
