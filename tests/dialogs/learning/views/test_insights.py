"""The Insights page: one's own numbers, everybody's for staff, and no more queries however many there are."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from dialogs.learning.reads.series import Point, Series
from dialogs.learning.views.insights import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, picture
from dialogs.models import LLM, Agent, Dialog, Generation
from dialogs.turns.reads.events import llms_to_choose
from dialogs.turns.writes.events import log
from dialogs.turns.writes.messages import post_message
from health.models import LlmCalibration, Proposal
from tests.builders import a_generation, a_reading
from tests.dialogs.compacting_builders import guard
from tests.dialogs.compaction_runs import a_run, a_step
from tests.dialogs.learning.views.test_events import another
from tests.dialogs.pages.views.pages import page

INSIGHTS = "/insights/"
START = datetime(2026, 11, 20, tzinfo=UTC)
FLOOR = HEIGHT - BOTTOM


def a_day(dialog: Dialog) -> None:
    """One measured answer, one over-hit, one compaction."""
    a_run(
        dialog, status="applied", estimated_before=4500, estimated_after=3420, reward=1.25, coherence=0.875,
        steps=[a_step("trim_payloads", 4500, 3420)], started_at=timezone.now(), finished_at=timezone.now(),
    )  # fmt: skip
    a_reading(dialog, 640)
    log("OVER_HIT", dialog, estimated=5200, limit=5000)


def chart_of(client: Client, query: str = "") -> str:
    """Where the page gets its chart, which is not waited for with the numbers."""
    return str(client.get(INSIGHTS + query).context["charted"].chart)


def cells_of(client: Client) -> dict[str, str]:
    """The first row of the table, by the labels of its columns."""
    row = client.get(INSIGHTS).content.decode().partition("<tbody>")[2].partition("</tr>")[0]
    return {label: text.strip() for label, text in re.findall(r'data-label="([^"]+)">([^<]*)</td>', row)}


def test_numbers_say_whether_they_were_measured_or_estimated(as_alice: Client, dialog: Dialog) -> None:
    Dialog.objects.filter(pk=dialog.pk).update(title="The pump")
    a_day(dialog)
    LlmCalibration.objects.create(llm=dialog.llm, samples=[[90, 90, 100], [120, 120, 100]])

    shown, chart = page(as_alice, INSIGHTS), page(as_alice, chart_of(as_alice))

    for words in ("Helper", "scripted/tiny", "640", "≈1,080", "1.25", "0.88", "15.0 %", "+5.0 %"):
        assert words in shown.text
    assert "Trim payloads" in shown.text
    assert "640" in chart.text
    assert "≈4,500" in chart.text
    assert "The pump" not in shown.text + chart.text
    assert shown.offences + chart.offences == []


def test_an_empty_page_says_what_will_appear_and_when(as_alice: Client) -> None:
    shown = page(as_alice, INSIGHTS)

    assert "Nothing to tell yet" in shown.text
    assert "With the first answer" in shown.text


def test_where_nothing_was_compacted_there_are_dashes_and_zeros_only_of_what_is_guarded(
    as_alice: Client, dialog: Dialog
) -> None:
    post_message(dialog=dialog, content="Hello")
    a_reading(dialog, 640)

    cells = cells_of(as_alice)

    assert (cells.pop("Generations"), cells.pop("Most tokens"), cells.pop("Refused")) == ("1", "640", "0")
    assert len(cells) == 8
    assert set(cells.values()) == {"—"}

    guard(dialog)

    cells = cells_of(as_alice)
    assert (cells["Over-hits"], cells["Warnings"], cells["Tokens saved"]) == ("0", "0", "—")


def test_nobody_sees_anothers_numbers_and_only_staff_see_everybodys(
    as_bob: Client, as_sam: Client, dialog: Dialog
) -> None:
    a_day(dialog)

    assert as_bob.get(f"{INSIGHTS}?all=1").context["rows"] == []
    assert as_sam.get(INSIGHTS).context["rows"] == []
    (row,) = as_sam.get(f"{INSIGHTS}?all=1").context["rows"]
    assert row.figures.over_hits == 1
    assert str(dialog.pk) not in as_sam.get(f"{INSIGHTS}?all=1").content.decode()


def test_a_row_leads_to_its_own_chart(as_alice: Client, dialog: Dialog) -> None:
    zoe = Agent.objects.create(name="Zoe", slug="zoe", llm=dialog.llm)
    a_day(dialog)
    log("OVER_HIT", another(dialog, agent=zoe), limit=5000)

    urls = {row.agent: row.url for row in as_alice.get(f"{INSIGHTS}?days=1").context["rows"]}

    assert as_alice.get(f"{INSIGHTS}?days=1").context["charted"].agent == dialog.agent
    assert as_alice.get(urls[zoe]).context["charted"].agent == zoe


def test_a_chart_holds_what_is_ones_own_and_for_staff_everybodys(
    as_alice: Client, as_bob: Client, as_sam: Client, dialog: Dialog
) -> None:
    a_day(dialog)
    own = chart_of(as_alice)

    assert "≈4,500" in page(as_alice, own).text
    assert "≈4,500" not in page(as_bob, f"{own}&all=1").text
    assert "≈4,500" not in page(as_sam, own).text
    assert "≈4,500" in page(as_sam, chart_of(as_sam, "?all=1")).text


def test_a_chart_of_nobody_is_not_there(as_alice: Client, dialog: Dialog) -> None:
    for query in ("", "?agent=999&llm=1", f"?agent={dialog.agent_id}"):
        assert as_alice.get(f"/insights/chart/{query}").status_code == 404


def test_a_pattern_leads_to_its_events_and_for_staff_to_the_proposal(
    as_alice: Client, alice: User, dialog: Dialog
) -> None:
    for _each in range(3):
        log("OVER_HIT", dialog)
    proposal = Proposal.objects.create(kind="limit", agent=dialog.agent)

    seen = page(as_alice, INSIGHTS)
    User.objects.filter(pk=alice.pk).update(is_staff=True)
    by_staff = page(as_alice, INSIGHTS)

    events = f"/events/?code=OVER_HIT&agent={dialog.agent_id}&days=1"
    assert "3 times: the context was over its limit" in " ".join(seen.text.split())
    assert events in seen.links()
    assert "staff decide" in seen.text
    assert f"/proposals/#proposal-{proposal.pk}" in by_staff.links()


def test_the_page_asks_no_more_however_much_there_is(as_alice: Client, dialog: Dialog) -> None:
    asked = []
    for days in (3, 9):
        for number in range(days):
            agent = Agent.objects.create(name=f"A {days} {number}", slug=f"a-{days}-{number}", llm=dialog.llm)
            log("WARNING", another(dialog, agent=agent), limit=5000)
            a_day(dialog)
        chart = chart_of(as_alice)
        with CaptureQueriesContext(connection) as queries:
            as_alice.get(INSIGHTS)
        with CaptureQueriesContext(connection) as of_the_chart:
            as_alice.get(chart)
        asked.append((len(queries), len(of_the_chart)))

    few, many = asked
    assert few == many
    page_asks, chart_asks = few
    assert page_asks <= 16
    assert chart_asks <= 10


def test_nonsense_in_the_address_is_read_as_the_default(as_alice: Client, dialog: Dialog) -> None:
    a_day(dialog)

    shown = as_alice.get(f"{INSIGHTS}?agent=x&llm=99999999999999999999&days=x&all=x")

    assert len(shown.context["rows"]) == 1


def test_an_agent_is_chosen_by_its_name_whatever_that_is(as_alice: Client, dialog: Dialog) -> None:
    zoe = Agent.objects.create(name="<b>Zoe & Co", slug="zoe", llm=dialog.llm)

    shown = as_alice.get(f"{INSIGHTS}?agent={zoe.pk}").content.decode()

    assert f'<option value="{zoe.pk}" selected>&lt;b&gt;Zoe &amp; Co</option>' in shown
    assert f'<option value="{dialog.agent_id}">Helper</option>' in shown


def test_the_filters_offer_only_what_answered(as_alice: Client, dialog: Dialog) -> None:
    Agent.objects.create(name="Never used", slug="never", llm=dialog.llm)
    LLM.objects.create(provider=dialog.llm.provider, model_id="never-used")
    a_day(dialog)

    shown = as_alice.get(INSIGHTS).context

    assert [name for _pk, name in shown["agents"]] == ["Helper"]
    assert [pk for pk, _slug in shown["llms"]] == [dialog.llm_id]


@pytest.mark.skipif(connection.vendor != "postgresql", reason="of PostgreSQL's plan")
def test_the_filters_read_what_answered_once_however_many_llms_never_did(dialog: Dialog) -> None:
    LLM.objects.bulk_create([LLM(provider=dialog.llm.provider, model_id=f"unused{at}") for at in range(9)])
    post_message(dialog=dialog, content="Hello")
    dialog.refresh_from_db()
    told = Generation.objects.filter(pk=a_generation(dialog).pk).values().get()
    Generation.objects.bulk_create([Generation(**told | {"id": None, "number": number}) for number in range(2, 3000)])
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")

    plan = llms_to_choose(Generation.objects.filter(dialog__in=Dialog.objects.filter(owner=dialog.owner))).explain(
        analyze=True
    )

    assert set(re.findall(r"on dialogs_generation.*loops=(\d+)", plan)) == {"1"}, plan


def at(hours: float, *values: int) -> Point:
    return Point(at=START + timedelta(hours=hours), count=1, values=values)


def a_series(*tokens: Point, limits: tuple[Point, ...] = (), marks: tuple[Point, ...] = ()) -> Series:
    return Series(start=START, end=START + timedelta(hours=10), tokens=tokens, limits=limits, marks=marks)


def places(line: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in (place.split(",") for place in line.split())]


def test_nothing_gives_no_picture() -> None:
    assert picture(a_series(limits=(at(10, 5000),))).is_empty


def test_time_goes_to_the_right_and_tokens_upwards() -> None:
    drawn = picture(a_series(at(0, 100), at(5, 400), at(10, 200)))

    (x1, y1), (x2, y2), (x3, y3) = places(drawn.line)
    assert (x1, x3) == (LEFT, WIDTH - RIGHT)
    assert x2 == round((x1 + x3) / 2, 1)
    assert TOP <= y2 < y3 < y1 < FLOOR


def test_a_compaction_is_a_mark_of_its_own_beside_the_measured_line() -> None:
    drawn = picture(a_series(at(1, 3000), marks=(at(2, 4500, 2000),)))

    (mark,) = drawn.marks
    assert len(places(drawn.line)) == 1
    assert mark.y < places(drawn.line)[0][1] < mark.left


def test_a_limit_is_drawn_as_steps_to_the_last_that_is_known() -> None:
    drawn = picture(a_series(at(1, 3000), limits=(at(2, 4000), at(6, 5000), at(10, 5000))))

    held = places(drawn.limit)
    assert held[0][0] == LEFT
    assert held[-1][0] == WIDTH - RIGHT
    assert all(x1 == x2 or y1 == y2 for (x1, y1), (x2, y2) in pairwise(held))
    assert len({y for _x, y in held}) == 2


def test_a_limit_is_told_where_it_lies_far_above_now_and_drawn_as_it_was() -> None:
    above, fell, rose = (
        picture(a_series(at(1, tokens), limits=limits))
        for tokens, limits in (
            (300, (at(10, 131_072),)),
            (3000, (at(2, 131_072), at(10, 4000))),
            (3000, (at(2, 4000), at(10, 131_072))),
        )
    )

    assert (above.limit, above.limit_above) == ("", 131_072)
    held = places(fell.limit)
    assert fell.limit_above is None
    assert (held[0][1], TOP < held[-1][1] < FLOOR) == (TOP, True)
    held = places(rose.limit)
    assert rose.limit_above == 131_072
    assert held[0][1] > held[-1][1] == TOP


def test_axes_begin_at_nothing() -> None:
    drawn = picture(a_series(at(1, 3000)))

    assert (drawn.ticks[0].y, drawn.ticks[0].label) == (FLOOR, "0")
    assert drawn.ticks[-1].label == "3,000"
