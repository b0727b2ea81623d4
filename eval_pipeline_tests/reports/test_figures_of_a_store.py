"""40 figures drawn from a store are read back from what the product writes in seven places: each reads the same.

Two suites, one of them of a single turn, with figures that are unknown, 0, of one turn, negative and huge. `EVAL_SEED`
draws the same ones again.
"""

import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from html.parser import HTMLParser
from itertools import product
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import openpyxl
import pytest

from eval_pipeline.chain.evaluation import stage_of
from eval_pipeline.core import shown
from eval_pipeline.core.model import Response
from eval_pipeline.core.model_versions import ModelVersion
from eval_pipeline.core.shown import Unit
from eval_pipeline.defs.assets import describe
from eval_pipeline.operations.ci.summaries import SUMMARY
from eval_pipeline.providers import registry
from eval_pipeline.providers.base import Call, Environment
from eval_pipeline.reports.nights.message import night_message
from eval_pipeline.reports.nights.night import read_night
from eval_pipeline.stages.reporting import comparison_page_path
from eval_pipeline.view.page import Bench
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline_tests.reports.test_same_figures import excel
from eval_pipeline_tests.seeds import SEED
from eval_pipeline_tests.support import BROKEN, Lab, Puppet, case, number, response
from eval_pipeline_tests.view.pages import let_in

DRAWS = 40
FIRST, LAST = date(2026, 3, 1), date(2026, 3, 2)
SUITES = {"harbour": 24, "alone": 1}
"""Cases of each suite."""
OF_EVALUATION_IN_DAGSTER = ("statistics", "cost_per_correct_answer")
PLACES = ("terminal", "markdown", "page", "workbook", "digest", "workbench", "dagster")


class Key(NamedTuple):
    """What a figure tells, and of whom: one model version, or two of them."""

    what: str
    suite: str
    who: str
    day: date


class Told(NamedTuple):
    """A figure as the store has it."""

    unit: Unit
    value: float | None
    low: float | None
    high: float | None
    n: int | None


Read = dict[Key, str]


def answer(name: str, day: date) -> Callable[[Call], Response]:
    """What a model version says on a day."""

    def said(call: Call) -> Response:
        place = int(call.case_id[-2:])
        right = {
            "steady": place != 5, "falling": day == FIRST or place > 9, "nothing": False, "huge": place % 2 == 0,
            "silent": place % 3 > 0,
        }[name]  # fmt: skip
        text = call.gold.oracle() if right else BROKEN if place % 4 == 3 else number(-1)
        tokens = {"huge": (10**12 + 7, 10**11), "silent": (None, None)}.get(name, (100 + 7 * place, 10 + place))
        return response(text, *tokens)

    return said


VERSIONS = ("steady", "falling", "nothing", "huge", "silent")
RUNS = {FIRST: ("falling", "nothing", "huge"), LAST: VERSIONS}
PRICES = {"falling": 17.3, "nothing": 0.0, "huge": 45.0, "silent": 2.0}


class Spokesman(Puppet):
    """Answers as the model version does on the day."""

    day: ClassVar[date]

    def __init__(self, version: ModelVersion, environment: Environment) -> None:
        self._answer = answer(version.name, self.day)

    async def generate(self, call: Call) -> Response:
        return self._answer(call)


@pytest.fixture
def lab_folder(same_folder: Path) -> Path:
    return same_folder


def make(lab: Lab) -> list[str]:
    """Makes the home; returns what each command printed."""
    for suite, cases in SUITES.items():
        lab.suite(suite, [case(f"ship_{n:02}", (f"{n + 10}", n + 10.0)) for n in range(cases)])
    lab.versions(
        *[
            {"name": name, "provider": "puppet", "model": name, "max_recovery_attempts": 0}
            | ({"price": {"input": PRICES[name], "output": PRICES[name]}} if name in PRICES else {})
            for name in VERSIONS
        ]
    )
    told = []
    for day, names in RUNS.items():
        Spokesman.day = day
        chosen = [word for name in names for word in ("--model-version", name)]
        only = ["--no-report"] if day == FIRST else []
        said = lab.cli("run", "--fresh", *chosen, "--eval-date", day.isoformat(), *only)
        assert said.code in (0, 1), said.text
        told.append(said.out)
    return told


_COSTS: Mapping[str, Unit] = {
    f"{unit}_{per}": unit for unit in ("usd", "tokens") for per in ("total", "per_success", "per_correct_turn")
}  # type: ignore[misc]
OF_EVALUATION = "SELECT suite, model_version, eval_date"


def figures(lab: Lab) -> dict[Key, Told]:
    """Every figure of the store that people are shown in several places."""
    found: dict[Key, Told] = {}
    for *who, n, value, low, high in lab.sql(
        f"{OF_EVALUATION}, n, mean, low, high FROM statistics WHERE metric = 'correct' AND split = 'all'"
    ):
        found[Key("accuracy", *who)] = Told("rate", value, low, high, n)
    for name, unit in _COSTS.items():
        ends, days = "NULL, NULL", "true"
        if not name.endswith("total"):  # of an earlier date, only its own report tells it, and none is made
            ends, days = f"{name}_low, {name}_high", f"eval_date = DATE '{LAST}'"
        for *who, n, value, low, high in lab.sql(
            f"{OF_EVALUATION}, turns, {name}, {ends} FROM cost_per_correct_answer WHERE {days}"
        ):
            found[Key(name, *who)] = Told(unit, value, low, high, n)
    for *who, n, value, low, high in lab.sql(
        f"{OF_EVALUATION}, n, previous_difference, previous_low, previous_high FROM trends"
    ):
        found[Key("change", *who)] = Told("points", value, low, high, n)
    for suite, a, b, n, value, low, high in lab.sql(
        "SELECT suite, model_a, model_b, n, difference, low, high FROM model_comparisons"
    ):
        found[Key("difference", suite, f"{b} minus {a}", LAST)] = Told("points", value, low, high, n)
    for *who, n, value, low, high in lab.sql(
        f"{OF_EVALUATION}, n, open_loss_difference, previous_low, previous_high FROM trends "
        "WHERE open_loss_date IS NOT NULL"
    ):
        found[Key("loss", *who)] = Told("points", value, low, high, n)
    return found


class Cells(HTMLParser):
    """The rows of the tables of a page, as texts of cells, each with the heading of its table and column."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tables: list[list[list[str]]] = []
        self._in = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table":
            self.tables.append([])
        elif tag == "tr" and self.tables:
            self.tables[-1].append([])
        elif tag in ("td", "th") and self.tables and self.tables[-1]:
            self.tables[-1][-1].append("")
            self._in = True

    def handle_endtag(self, tag: str) -> None:
        self._in = self._in and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self._in:
            self.tables[-1][-1][-1] = " ".join(f"{self.tables[-1][-1][-1]} {data}".split())


def tables_of(html: str, *headers: str) -> list[dict[str, str]]:
    """The rows of every table that has these headers, by header."""
    found = []
    for head, *rows in filter(None, Cells(html).tables):
        if set(headers) <= set(head):
            found += [dict(zip(head, row, strict=False)) for row in rows]
    return found


def markdown_tables(text: str, *headers: str) -> list[dict[str, str]]:
    """The rows of Markdown tables that have these headers."""
    found, head = [], []
    for line in [*text.splitlines(), ""]:
        cells = [re.sub(r"\\(.)", r"\1", cell).strip().strip("`") for cell in line.strip().strip("|").split(" | ")]
        if not line.startswith("|"):
            head = []
        elif not head:
            head = cells
        elif set(headers) <= set(head) and not set(line) <= set("|- :"):
            found.append(dict(zip(head, cells, strict=False)))
    return found


FIGURE = r"–|[−+]?\$?[\d,.]+%?"


def in_terminal(lab: Lab, printed: list[str]) -> Read:
    found: Read = {}
    row = re.compile(
        rf"^ +(\w+) +({FIGURE})(?: \[.*?\])? +(?:({FIGURE}) +)?({FIGURE})(?: \d\d-\d\d)? +({FIGURE})( tokens)?(?: |$)"
    )
    for (day, names), text in zip(RUNS.items(), printed, strict=True):
        suite = ""
        for line in text.splitlines():
            suite = line.strip() if line.strip() in SUITES else suite
            if suite and (match := row.match(line)) and (name := match[1]) in names:
                found[Key("accuracy", suite, name, day)] = match[2]
                found[Key("change", suite, name, day)] = match[4]
                unit = "tokens" if match[6] else "usd"
                found[Key(f"{unit}_per_correct_turn", suite, name, day)] = match[5]
    return found


def compared(lab: Lab, keys: list[Key], *form: str) -> dict[Key, str]:
    found = {}
    for key in keys:
        b, a = key.who.split(" minus ")
        said = lab.cli("compare", a, b, "--suite", key.suite, *form)
        assert said.code in (0, 1), said.text
        found[key] = said.out
    return found


def differences_in_terminal(texts: Mapping[Key, str]) -> Read:
    found = {}
    for key, text in texts.items():
        if match := re.search(rf"^  difference +({FIGURE}) points", text, re.MULTILINE):
            found[key] = match[1]
        else:
            assert "  no test " in text, text
    return found


def differences_in_markdown(texts: Mapping[Key, str]) -> Read:
    found = {}
    for key, text in texts.items():
        if match := re.search(rf"^\*\*.*: ({FIGURE}) points", text, re.MULTILINE):
            found[key] = match[1]
        else:
            assert "**No test: " in text, text
    return found


def in_markdown(summary: str) -> Read:
    """The summary of a step has a table a run, in their order."""
    found: Read = {}
    for day, part in zip(RUNS, summary.split("### Evaluations")[1:], strict=True):
        for row in markdown_tables(part, "suite", "model version"):
            suite, name = row["suite"], row["model version"].split()[0]
            found[Key("accuracy", suite, name, day)] = row["accuracy [95% interval]"].split(" [")[0]
            found[Key("usd_per_success", suite, name, day)] = row["US dollars per success"]
    return found


LABELS = {
    "US dollars per right turn": "usd_per_correct_turn",
    "Tokens per right turn": "tokens_per_correct_turn",
    "US dollars per successful conversation": "usd_per_success",
    "Tokens per successful conversation": "tokens_per_success",
}


def folder_of(lab: Lab, suite: str, *names: str) -> Path:
    return lab.home.reports.joinpath(suite, *names)


def comparison_of(lab: Lab, suite: str) -> Path:
    path = comparison_page_path(lab.workspace(), suite)
    assert path is not None
    return path


def on_page(lab: Lab) -> Read:
    found: Read = {}
    for suite in SUITES:
        for name in VERSIONS:
            html = (folder_of(lab, suite, name, LAST.isoformat()) / "report.html").read_text()
            for table in Cells(html).tables:
                for label, *cells in filter(None, table):
                    what = LABELS.get(label, "accuracy" if label.startswith("Accuracy (") else "")
                    if what and cells:
                        found[Key(what, suite, name, LAST)] = cells[0]
        html = comparison_of(lab, suite).read_text()
        for row in tables_of(html, "model version", "since the date before, points"):
            key = Key("change", suite, row["model version"], date.fromisoformat(row["date"]))
            found[key] = row["since the date before, points"].split(" [")[0]
            found[key._replace(what="accuracy")] = row["accuracy"]
        for row in tables_of(html, "pair", "difference, points", "p corrected"):
            found[Key("difference", suite, row["pair"], LAST)] = row["difference, points"]
    return found


def seen(cell: Any) -> str:
    """What a cell of a workbook shows."""
    return excel(cell.value, cell.number_format) if isinstance(cell.value, int | float) else shown.UNKNOWN


IN_BOOK = {"Tokens in all": "tokens_total", "US dollars in all": "usd_total"} | LABELS


def in_workbook(lab: Lab) -> Read:
    found: Read = {}
    for suite in SUITES:
        for name in VERSIONS:
            book = openpyxl.load_workbook(folder_of(lab, suite, name, LAST.isoformat()) / "report.xlsx")
            for sheet in ("Overview", "Cost"):
                for cells in book[sheet].iter_rows(max_col=2):
                    label = str(cells[0].value)
                    what = IN_BOOK.get(label, "accuracy" if label.startswith("Accuracy (") else "")
                    if what:
                        found[Key(what, suite, name, LAST)] = seen(cells[1])
        book = openpyxl.load_workbook(comparison_of(lab, suite).with_name("report.xlsx"))
        head, *rows = book["Evaluation dates"].iter_rows()
        at = {cell.value: place for place, cell in enumerate(head)}
        for row in rows:
            name, day = row[at["model version"]].value, date.fromisoformat(row[at["date"]].value)
            for what, column in {
                "accuracy": "accuracy", "change": "points since last date", "usd_total": "US dollars",
                "tokens_total": "tokens",
            }.items():  # fmt: skip
                found[Key(what, suite, name, day)] = seen(row[at[column]])
        for row in book["Comparison"].iter_rows():
            if row[0].value in VERSIONS:
                found[Key("difference", suite, f"{row[0].value} minus {row[1].value}", LAST)] = seen(row[4])
    return found


def in_digest(lab: Lab) -> Read:
    found: Read = {}
    line = re.compile(rf"^  (\w+)(?: \(simulated\))?: ({FIGURE})(?: \[[^\]]*\])?, (?:({FIGURE}) points)?.*; (.*)$")
    for day in (FIRST, LAST):
        suite = ""
        for text in night_message(read_night(lab.workspace().record, day, [])).splitlines():
            suite = text if text in SUITES else suite
            if match := re.match(rf"• .*loss.*: (\w+) · (\w+): ({FIGURE}) points", text):
                found[Key("loss", match[1], match[2], day)] = match[3]
            if match := line.match(text):
                found[Key("accuracy", suite, match[1], day)] = match[2]
                if match[3] or "not tested" not in text:  # a difference of one turn is not told there
                    found[Key("change", suite, match[1], day)] = match[3] or shown.UNKNOWN
                usd = match[4]
                found[Key("usd_total", suite, match[1], day)] = (
                    shown.UNKNOWN if usd == "dollars unknown" else usd.removeprefix("at least ")
                )
    return found


HOME_COLUMNS = {
    "accuracy": "Accuracy, 95% interval", "change": "Points against the date before",
    "right_turn": "A right answer costs", "dollars": "Dollars", "tokens": "Tokens", "look": "To look at",
}  # fmt: skip


def in_workbench(lab: Lab, pairs: list[Key]) -> Read:
    found: Read = {}
    with Bench.of(lab.home) as bench:
        client = let_in(bench)
        html = client.get("/?" + "&".join(f"show={name}" for name in HOME_COLUMNS)).text
        for part in html.split('<section class="suite"')[1:]:
            suite = re.search(r'suite-(\w+)"', part)[1]  # type: ignore[index]
            for row in tables_of(part, "Model version", HOME_COLUMNS["accuracy"]):
                name = row["Model version"].split()[0]
                of = {what: row[header] for what, header in HOME_COLUMNS.items()}
                key = Key("accuracy", suite, name, LAST)
                found[key] = re.sub(r"^(\S+) (?:\S+ to \S+|\d+ of \d+)$", r"\1", of["accuracy"])
                found[key._replace(what="change")] = of["change"]
                unit = "tokens" if of["right_turn"].endswith(" tokens") else "usd"
                found[key._replace(what=f"{unit}_per_correct_turn")] = of["right_turn"].removesuffix(" tokens")
                found[key._replace(what="usd_total")] = of["dollars"]
                found[key._replace(what="tokens_total")] = of["tokens"]
                if match := re.match(rf"({FIGURE}) points", of["look"]):
                    found[key._replace(what="loss")] = match[1]
        for name, text, suite in re.findall(r"<li>Loss: <a[^>]*>(\S+) points</a> (\w+) on (\w+)", html):
            assert found[Key("loss", suite, text, LAST)] == name
        for key in pairs:
            b, a = key.who.split(" minus ")
            html = client.get(f"/suites/{key.suite}/compare?versions={a},{b}&eval_dates={LAST},{LAST}").text
            rows = tables_of(html, "Counted", "Difference, points")
            found[key] = rows[0]["Difference, points"] if rows else shown.UNKNOWN
    return found


def plotted(made: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The figures among the numbers that Dagster plots, which have no more digits than are shown."""
    for what in {*WHERE} & {*made}:
        assert made[what] == shown.rounded(made[what]), (what, made[what])
        yield what, shown.number(made[what])


def in_dagster(lab: Lab, whose: set[tuple[str, date]]) -> Read:
    """From what its assets are described with; that a run hands it on is tested beside them."""
    found: Read = {}
    for suite, (name, day), asset in product(SUITES, sorted(whose), OF_EVALUATION_IN_DAGSTER):
        made = described(lab, asset, lab.inputs(suite, name, day=day))
        found |= {Key(f"{PLOTTED}{what}", suite, name, day): text for what, text in plotted(made)}
        for row in markdown_tables(str(made["table"].value)):
            if row.get("metric") == "correct":
                found[Key("accuracy", suite, name, day)] = row["mean"]
            if "tokens_total" in row:
                for what in ("tokens_total", "usd_total", "tokens_per_success", "usd_per_success"):
                    found[Key(what, suite, name, day)] = row[what]
    for suite, asset in product(SUITES, ("trends", "model_comparisons")):
        made = described(lab, asset, Inputs(lab.workspace(), suite))
        for row in markdown_tables(str(made["table"].value)) if "table" in made else ():
            if "previous_difference" in row:
                key = Key("change", suite, row["model_version"], date.fromisoformat(row["eval_date"]))
                found[key] = row["previous_difference"]
                found[key._replace(what="accuracy")] = row["accuracy"]
            if "model_b" in row:
                found[Key("difference", suite, f"{row['model_b']} minus {row['model_a']}", LAST)] = row["difference"]
    return found


def described(lab: Lab, asset: str, inputs: Inputs) -> Mapping[str, Any]:
    return describe.shown(stage_of(inputs.track, asset), inputs, lab.stage(asset, inputs))


WHERE = {
    "accuracy": set(PLACES),
    "change": {*PLACES} - {"markdown"},
    "difference": {*PLACES} - {"digest"},
    "loss": {"digest", "workbench"},
    "tokens_per_correct_turn": {"terminal", "page", "workbook", "workbench"},
    "usd_per_correct_turn": {"terminal", "page", "workbook", "workbench"},
    "tokens_per_success": {"page", "workbook", "dagster"},
    "usd_per_success": {"markdown", "page", "workbook", "dagster"},
    "tokens_total": {"workbook", "workbench", "dagster"},
    "usd_total": {"workbook", "digest", "workbench", "dagster"},
}
"""The places that tell a figure."""
PLOTTED = "plotted: "
"""Before what a number in Dagster's metadata is, which has no unit there."""
KINDS = {
    "unknown": lambda told: told.value is None,
    "zero": lambda told: told.value == 0,
    "of one": lambda told: told.n == 1 and told.value is not None,
    "negative": lambda told: told.value is not None and told.value < 0,
    "huge": lambda told: told.value is not None and told.value > 10**9,
}


def draw(found: Mapping[Key, Told]) -> list[Key]:
    """Two of each kind, one of everything that is told, and any others."""
    chance, keys = random.Random(SEED), sorted(found)
    chosen = {key for is_one in KINDS.values() for key in chance.sample([k for k in keys if is_one(found[k])], 2)}
    several = [key for key in keys if found[key].n != 1]  # a terminal tells no difference of a single turn
    chosen |= {chance.choice([key for key in several if key.what == what]) for what in WHERE}
    return [*sorted(chosen), *chance.sample([key for key in keys if key not in chosen], DRAWS - len(chosen))]


def everywhere(lab: Lab, chosen: list[Key], printed: list[str], summary: str) -> dict[str, Read]:
    pairs = [key for key in chosen if key.what == "difference"]
    return {
        "terminal": in_terminal(lab, printed) | differences_in_terminal(compared(lab, pairs)),
        "markdown": in_markdown(summary) | differences_in_markdown(compared(lab, pairs, "--format", "markdown")),
        "page": on_page(lab),
        "workbook": in_workbook(lab),
        "digest": in_digest(lab),
        "workbench": in_workbench(lab, pairs),
        "dagster": in_dagster(lab, {(key.who, key.day) for key in chosen if key.what != "difference"}),
    }


def compare(
    found: Mapping[Key, Told], chosen: list[Key], read: Mapping[str, Read]
) -> tuple[dict[str, int], list[tuple[Any, ...]]]:
    counts, wrong = defaultdict[str, int](int), []
    for key in chosen:
        told = found[key]
        expected = shown.figure(told.value, told.unit, told.low, told.high)
        places = {place: read[place][key] for place in PLACES if key in read[place]}
        assert places, key
        for place, text in places.items():
            counts[place] += 1
            if text != expected:
                wrong.append((*key, place, expected, text, *told))
    return counts, wrong


@pytest.mark.usefixtures("puppet")
def test_figures_of_a_store_read_the_same_in_every_place(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(registry.PROVIDERS, "puppet", f"{__name__}:Spokesman")
    monkeypatch.setenv(SUMMARY, str(tmp_path / "summary.md"))
    printed = make(lab)
    found = figures(lab)
    chosen = draw(found)
    summary = (tmp_path / "summary.md").read_text()
    read = everywhere(lab, chosen, printed, summary)
    counts, wrong = compare(found, chosen, read)
    with capsys.disabled():
        print(f"EVAL_SEED={SEED}: {len(chosen)} of {len(found)} figures, read in {dict(counts)}")
    assert wrong == [], "\n".join(map(str, wrong))
    assert set(counts) == set(PLACES)
    told_in = {what: {place for place in PLACES if any(key.what == what for key in read[place])} for what in WHERE}
    assert told_in == WHERE, "no place is left out by mistake"
    plotted_by = {key._replace(what=f"{PLOTTED}{key.what}"): told.value for key, told in found.items()}
    numbers = {key: text for key, text in read["dagster"].items() if key in plotted_by}
    assert numbers
    assert numbers == {key: shown.number(plotted_by[key]) for key in numbers}
