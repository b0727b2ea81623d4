"""Charts as SVG: every mark is within the picture, says what it is, and nothing in a name does anything."""

import re
from collections.abc import Callable
from datetime import date, timedelta
from io import BytesIO
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageColor

from eval_pipeline.reports.charts.canvas import Chart, picture
from eval_pipeline.reports.charts.svg.crossed import ShareCell, Stack, grid_chart, stacks_chart
from eval_pipeline.reports.charts.svg.drawing import WIDTH, fitted, rate_ticks, stylesheet, ticks, width_of
from eval_pipeline.reports.charts.svg.plane import CeilingMark, CostPoint, LevelPoint, cost_chart, level_chart
from eval_pipeline.reports.charts.svg.rows import (
    GAIN,
    LOSS,
    SAME,
    IntervalRow,
    Part,
    change_rows,
    parts_chart,
    rate_rows,
)
from eval_pipeline.reports.charts.svg.series import MOST_SERIES, DatePoint, Series, series_chart

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "\"><script>window.pwned = 1</script>&\x1b[31m\u202e'"
NAMES = st.sampled_from(["weak", HOSTILE, "名" * 60, "W" * 90, ""])
RATES = st.floats(0, 1)
DECIMALS = st.integers(-(10**12), 10**12).map(lambda number: number / 10**6)
HREFS = st.sampled_from(["", "/suites/a/turns?x=1&y=2"])
STATES = st.sampled_from([LOSS, GAIN, SAME, ""])


@st.composite
def intervals(draw: st.DrawFn, least: float = 0.0) -> tuple[float, float | None, float | None]:
    """A value with an interval around it, or without one."""
    low, value, high = sorted(draw(st.tuples(*(st.floats(least, 1),) * 3)))
    return (value, low, high) if draw(st.booleans()) else (value, None, None)


@st.composite
def lines(draw: st.DrawFn) -> str:
    def points() -> list[DatePoint]:
        days = sorted(draw(st.sets(st.integers(0, 900), min_size=1, max_size=5)))
        return [
            DatePoint(date(2025, 1, 1) + timedelta(day), *draw(intervals()), draw(st.booleans()), draw(NAMES),
                      draw(st.booleans()), draw(NAMES), draw(HREFS))
            for day in days
        ]  # fmt: skip

    count = draw(st.integers(1, MOST_SERIES))
    return series_chart([Series(draw(NAMES), points(), draw(NAMES)[:20]) for _ in range(count)], HOSTILE)


def _lists(of: st.SearchStrategy) -> st.SearchStrategy:
    return st.lists(of, min_size=1, max_size=6)


def _rows(least: float) -> st.SearchStrategy:
    made = st.builds(lambda name, ends, state, href: IntervalRow(name, *ends, "−1.0", state, name, href),
                     NAMES, intervals(least), STATES, HREFS)  # fmt: skip
    return _lists(made)


PARTS = _lists(
    st.builds(Part, NAMES, RATES, st.none() | RATES, st.just("22"), st.just("+6"), st.booleans(), NAMES, HREFS)
)
COSTS = _lists(
    st.builds(lambda name, cost, ends, group, front: CostPoint(name, cost, *ends, group, front, name, "/x"),
              NAMES, st.floats(0, 1e6), intervals(), NAMES, st.booleans())
)  # fmt: skip
LEVELS = _lists(st.builds(lambda level, ends: LevelPoint(level, *ends), st.integers(0, 40), intervals()))
CEILINGS = st.builds(
    CeilingMark, RATES, st.none() | st.floats(0, 40), st.none() | st.floats(0, 40), st.none() | st.floats(0, 40)
)


@st.composite
def grids(draw: st.DrawFn) -> str:
    rows, columns = (draw(st.lists(NAMES, min_size=1, max_size=9)) for _ in range(2))
    cells = st.none() | st.builds(ShareCell, RATES, st.sampled_from(["0/1", "1,200/1,234"]), NAMES)
    return grid_chart(rows, columns, [[draw(cells) for _ in columns] for _ in rows], HOSTILE)


STACKS = _lists(
    st.builds(Stack, NAMES, st.lists(st.integers(0, 10**6), min_size=4, max_size=4), st.just("7 of 9"), NAMES)
)
CHARTS = st.one_of(
    lines(),
    grids(),
    STACKS.map(lambda stacks: stacks_chart(stacks, ("right", "terms missing", "terms extra", "both"), HOSTILE)),
    _rows(-1).map(lambda rows: change_rows(rows, HOSTILE)),
    _rows(0).map(lambda rows: rate_rows(rows, HOSTILE)),
    PARTS.map(lambda parts: parts_chart(parts, "2026-03-02", "2026-03-01", HOSTILE)),
    COSTS.map(lambda points: cost_chart(points, "tokens", HOSTILE)),
    st.builds(lambda points, ceiling: level_chart(points, ceiling, HOSTILE, HOSTILE), LEVELS, CEILINGS),
)


@given(CHARTS)
def test_whatever_is_drawn_is_within_the_picture_and_does_nothing(svg: str) -> None:
    found = ElementTree.fromstring(svg)
    _, _, width, height = map(float, found.attrib["viewBox"].split())
    allowed = {SVG + name for name in "svg g a title text line circle rect path polyline polygon".split()}
    linked = False
    for one in found.iter():
        assert one.tag in allowed, one.tag
        assert not [name for name in one.attrib if name.startswith("on") or name in {"style", "fill", "id"}]
        linked |= one.tag == f"{SVG}a"
        for name in ("x", "x1", "x2", "cx"):
            assert -0.05 <= float(one.get(name, 0)) <= width
        for name in ("y", "y1", "y2", "cy"):
            assert -0.05 <= float(one.get(name, 0)) <= height
        for corner in one.get("points", "").split():
            x, y = map(float, corner.split(","))
            assert (0 <= x <= width, 0 <= y <= height) == (True, True)
    assert found.attrib["role"] == ("group" if linked else "img")
    assert "window.pwned" in found.attrib["aria-label"]
    assert not {"\x1b", "\u202e"} & set(svg)


DAYS = [date(2026, 11, day) for day in (20, 22, 24, 28)]
NIGHTS = [
    DatePoint(DAYS[0], 0.9, 0.85, 0.95),
    DatePoint(DAYS[1], 0.7, 0.6, 0.8, loss=True, href="/lost", words="70% on 2026-11-22, a loss"),
    DatePoint(DAYS[2], 0.8, 0.7, 0.9, broken="prompt"),
    DatePoint(DAYS[3], 0.8, 0.7, 0.9, compared=False),
]
LONG = [DatePoint(date(2026, 3, 1) + timedelta(n), 0.5, 0.4, 0.6) for n in range(20)]
COST = [CostPoint("a", 1, 0.5, on_front=True), CostPoint("b", 2, 0.6, on_front=True), CostPoint("c", 2, 0.55)]


@pytest.mark.parametrize(
    ("svg", "counts"),
    [
        # The line ends where something else is compared, and before what was not compared: of four points one piece.
        (series_chart([Series("m", NIGHTS)], "w"),
         {'class="loss"': 1, 'class="break s0"': 1, "polyline": 1, 'class="dot open s0"': 1, 'href="/lost"': 1,
          ">20 Nov<": 1, ">28 Nov<": 1}),
        (series_chart([Series("m", NIGHTS[:1])], "w"), {"polyline": 0, 'class="loss"': 0}),
        # So many dates that intervals are a band.
        (series_chart([Series("m", LONG)], "w"), {"polygon": 1, "whisker": 0, "scale(0.6)": 20, "polyline": 1}),
        (change_rows([IntervalRow("t", -0.165, -0.25, -0.08, "−16.5", LOSS)], "w"),
         {'class="dot worse"': 1, 'class="zero"': 1, ">−30<": 1, ">+10<": 1}),
        (parts_chart([Part("m", 0.1, 0.2, "24", "−24")], "now", "before", "w"),
         {'class="bar" x="0" y="40" width="154"': 1, 'class="bar before" x="0" y="46.5" width="308"': 1}),
        (parts_chart([Part("m", 0.1)], "now", "", "w"), {"bar before": 0}),
        # The stair goes along at 50% to the cost of b, then up.
        (cost_chart(COST, "dollars", "w", dollars=True), {'class="front"': 1, ">$2<": 1, 'class="dot same"': 1}),
        (level_chart([LevelPoint(1, 0.9), LevelPoint(2, None)], CeilingMark(0.5, 1), "steps", "w"),
         {'class="dot s0"': 1, 'class="threshold"': 1, 'class="band"': 1, ">50%<": 2, "scale(": 0}),
        (level_chart([LevelPoint(1, 0.9), LevelPoint(2, 0.4, few=6)], CeilingMark(0.5), "steps", "w"),
         {'class="dot s0"': 2, "scale(0.6)": 1, ">n=6<": 1}),
        # Numbers of turns stand where they cover nothing.
        (level_chart([LevelPoint(n, 0.4 + n % 2 / 2, few=6) for n in range(8)], CeilingMark(0.5), "steps", "w"),
         {'class="dot s0"': 8, ">n=6<": 8}),
        # The name of the threshold, at the end of its line, is covered by no number.
        (level_chart([*(LevelPoint(n, 0.9) for n in range(6)), LevelPoint(6, 0.5, few=2), LevelPoint(7, 1.0)],
                     CeilingMark(0.5), "steps", "w"), {">n=2<": 0}),
        (level_chart([LevelPoint(n, 0.4, few=6) for n in range(16)], CeilingMark(0.5), "steps", "w"),
         {'class="dot s0"': 16, ">n=6<": 0}),
        # A part that nothing is in is only in the legend.
        (stacks_chart([Stack("a", [3, 0, 1], "3 of 4", "w")], ("right", "missing", "extra"), "w"),
         {'class="part s0"': 2, 'class="part s1"': 1, 'class="part s2" x="231"': 1, 'width="77"': 1, ">3 of 4<": 1}),
        # Of long names of columns the numbers stand in the grid, and a legend tells them.
        (grid_chart(["a", "b"], ["tag", "a long name"], [[ShareCell(1, "2/2", "w"),
        None], [None, ShareCell(0, "0/3", "")]], "w"),
         {'class="share better"': 2, 'fill-opacity="0.50"': 2, 'fill-opacity="0.00"': 2, ">1<": 0, ">a long name<": 1}),
        (grid_chart(["a"], ["x" * 40, "y"], [[None, None]], "w"), {'class="share better"': 0, ">1<": 1, ">2  y<": 1}),
    ],
)  # fmt: skip
def test_each_state_has_a_mark_of_its_own(svg: str, counts: dict[str, int]) -> None:
    assert {part: svg.count(part) for part in counts} == counts


def test_names_of_costs_do_not_lie_on_each_other_and_those_of_the_front_are_there() -> None:
    points = [CostPoint(f"m{n}", 1, 0.5, on_front=n == 7) for n in range(8)]
    svg = ElementTree.fromstring(cost_chart(points, "tokens", "w"))
    names = [one for one in svg.iter(f"{SVG}text") if one.get("class") == "name"]
    assert "m7" in {one.text for one in names}
    places = [(one.get("text-anchor"), float(one.attrib["y"])) for one in names]
    assert len(places) > 2
    for side in ("end", None):
        found = sorted(y for anchor, y in places if anchor == side)
        assert all(after - before >= 10.9 for before, after in pairwise(found))


def test_a_name_of_costs_lies_on_no_interval() -> None:
    """Two beside each other with equal accuracy: the second's name has no room at its right and would lie on a bar."""
    points = [CostPoint("simulated-strong", 450, 1.0, 0.5, 1.0), CostPoint("simulated-weak", 675, 1.0, 0.5, 1.0)]
    svg = ElementTree.fromstring(cost_chart(points, "tokens", "w"))
    bars = [float(one.attrib["x1"]) for one in svg.iter(f"{SVG}line") if "whisker" in one.get("class", "")]
    assert len(bars) == 2
    for one in (one for one in svg.iter(f"{SVG}text") if one.get("class") == "name"):
        x, wide = float(one.attrib["x"]), width_of(one.text or "")
        left = x - wide if one.get("text-anchor") == "end" else x
        assert not [bar for bar in bars if left < bar < left + wide]


@given(DECIMALS, DECIMALS.map(abs))
def test_ticks_are_round_and_hold_the_values(low: float, span: float) -> None:
    found = ticks(low, low + span)
    assert 2 <= len(found) <= 8
    slack = 1e-6 * max(abs(low), abs(low + span))
    assert found[0] <= low + slack and found[-1] >= low + span - slack


@given(_lists(RATES))
def test_an_axis_of_rates_is_not_longer_than_there_are_rates(values: list[float]) -> None:
    found = rate_ticks(values)
    assert (found[0] >= 0, found[-1] <= 1, found[-1] - found[0] >= 0.2 - 1e-9) == (True, True, True)
    assert found[0] - 1e-9 <= min(values) and max(values) <= found[-1] + 1e-9


@given(NAMES, st.floats(20, WIDTH))
def test_a_name_that_is_too_long_is_cut(name: str, room: float) -> None:
    assert width_of(fitted(name, room)) <= room
    assert fitted("weak", WIDTH) == "weak"


def test_every_colour_of_the_light_has_one_for_the_dark() -> None:
    light, dark = (part.split("}")[0] for part in stylesheet().split("@media screen and (prefers-color-scheme: dark)"))
    names: Callable[[str], set[str]] = lambda part: {one.split(":")[0].strip() for one in part.split("--")[1:]}  # noqa: E731
    assert names(light.split("display")[0]) == names(dark)


def test_a_picture_has_the_colours_of_a_light_page() -> None:
    told = rate_rows([IntervalRow("a", 0.5, 0.4, 0.6, "50%", LOSS)], "one")
    found = picture(Chart("one", "Accuracy", "", (), (), told))
    colours = {colour for _, colour in Image.open(BytesIO(found)).convert("RGB").getcolors(1 << 20) or []}
    wanted = dict(re.findall(r"(--[\w-]+): (#\w+)", stylesheet().split("@media")[0]))
    for name in ("--c-worse", "--c-ink", "--c-paper"):
        assert ImageColor.getrgb(wanted[name]) in colours
    assert found == picture(Chart("one", "Accuracy", "", (), (), told))
