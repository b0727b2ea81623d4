"""What models wrote is shown, never obeyed."""

import io
import json
import logging
import re
import sys
from dataclasses import replace
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer
from rich.table import Table

from eval_pipeline.cli import tending, terminal
from eval_pipeline.cli.evaluating.outcome import _files, run_shown
from eval_pipeline.cli.saying import say
from eval_pipeline.cli.terminal import Plain, ProgressBars, console, print_rows
from eval_pipeline.core.covering.coverage import Coverage
from eval_pipeline.core.covering.left_out import CaseCounts
from eval_pipeline.core.errors import InputError, Problem, UsageError
from eval_pipeline.core.home import Home
from eval_pipeline.core.model import Partition
from eval_pipeline.stages import reporting


def test_control_characters_of_an_answer_do_not_reach_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows(["answer"], [["\x1b]0;owned\x07 \x1b[31mred\x00\x9b2J\u202e\u200b [bold]b[/bold]\tend"]], "table")
    shown = capsys.readouterr().out
    assert not {"\x1b", "\x07", "\x00", "\x9b", "\u202e", "\u200b"} & set(shown)
    assert r"\u202e" in str(InputError([Problem("a\u202e.yaml", None, "", "b")]))
    assert "[bold]b[/bold]" in shown
    assert "owned" in shown


HOSTILE = "\x1b[2J\x07\x7f\x9b2J\r\u061c\u200b\u202e\u2066\ufeff\U000e0041 [bold]b[/bold]\tend\n"
CONTROLS = {letter for letter in HOSTILE if not letter.isprintable()} - {"\t", "\n"}


@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_what_models_wrote_neither_moves_a_terminal_nor_turns_its_text(
    form: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    print_rows([f"a{HOSTILE}"], [[HOSTILE]], form)
    say(HOSTILE)
    console.print(HOSTILE, highlight=False, markup=False, soft_wrap=True)
    console.print(Table(HOSTILE, caption=HOSTILE), highlight=False)
    found = capsys.readouterr().out
    assert not CONTROLS & set(re.sub(r"\x1b\[[\d;]*m", "", found)), "nothing but rich's own styles"
    assert found.count(r"\u202e") >= 4


def test_files_are_exact(capsys: pytest.CaptureFixture[str]) -> None:
    say(HOSTILE, nl=False)
    assert capsys.readouterr().out == HOSTILE
    print_rows(["answer"], [[HOSTILE]], "json")
    out = capsys.readouterr().out
    assert json.loads(out) == [{"answer": HOSTILE}]
    assert not CONTROLS & set(out)


def test_csv_for_a_program_is_exact(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows(["answer"], [["\x1b[31mred"]], "csv")
    assert capsys.readouterr().out == "answer\n\x1b[31mred\n"


def test_a_table_rounds_what_the_other_forms_have_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    row = [0.8179669030732863, 17468.941176470587, 1484860.25, 3, None, True]
    names = list("abcdef")
    print_rows(names, [row], "table")
    line = next(line for line in capsys.readouterr().out.splitlines() if "0.8" in line)
    assert line.split() == ["0.818", "17,469", "1,484,860", "3", "NULL", "True"]
    print_rows(names, [row], "csv")
    assert capsys.readouterr().out.splitlines()[1] == "0.8179669030732863,17468.941176470587,1484860.25,3,,True"


def test_a_table_that_would_be_too_narrow_to_read_has_a_line_a_value(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"tokens_per_success_{place}" for place in range(8)]
    rows = [[f"value-{place}-{name[-1]}" for name in names] for place in (1, 2)]
    monkeypatch.setattr(console, "width", 200)
    print_rows(names, rows, "table")
    assert any(all(cell in line for cell in rows[1]) for line in capsys.readouterr().out.splitlines())
    monkeypatch.setattr(console, "width", 60)
    print_rows(names, rows, "table")
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    values = [[name, cell] for row in rows for name, cell in zip(names, row, strict=True)]
    assert lines == [["row", "1", "of", "2"], *values[:8], ["row", "2", "of", "2"], *values[8:]]


def test_a_table_without_rows_has_its_headings(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows(["suite", "turn_id"], [], "table")
    assert "turn_id" in capsys.readouterr().out


def test_long_texts_are_folded_within_a_table(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "width", 60)
    print_rows(["turn", "question"], [["a#0", "why " * 100]], "table")
    shown = capsys.readouterr().out
    assert shown.count("why") == 100
    assert "row 1" not in shown


@pytest.mark.parametrize("width", [90, 100, 101, 110, 119, 120, 140])
def test_headings_are_whole_and_names_are_wrapped_between_words(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["suite", "model_version", "eval_date", "turns", "accuracy", "low", "high"]
    names += ["tokens_per_success", "usd_per_success", "simulated"]
    row = ["agents_sample", "simulated-strong", "2026-11-29", 24, 0.8765, 0.8487, 0.9131, 75767.2, None, True]
    monkeypatch.setattr(console, "width", width)
    print_rows(names, [row], "table")
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= width
    if shown.startswith("row"):
        assert width == 90
        return
    words = shown.split()
    assert {"suite", "accuracy", "simulated", "75,767"} <= {*words}
    assert {*words} & {"agents_sample", "agents_"} and {*words} & {"simulated-strong", "simulated-"}


@pytest.mark.parametrize("width", [72, 76, 80, 94, 95, 100, 120])
def test_the_table_of_a_run_cuts_no_figure_and_no_word(width: int, capsys: pytest.CaptureFixture[str]) -> None:
    correct = {"mean": 0.63, "low": 0.562, "high": 0.692, "n": 243, "reason": None}
    one: Any = SimpleNamespace(
        partition=Partition("finqa_sample", "simulated-weak", date(2026, 11, 29)), simulated=True, scope="full",
        drawn=(), overall={"correct": correct}, coverage=Coverage(243, 243, 243, 230, 243), cases=CaseCounts(48, 48),
        ceiling={"ceiling": 3.0, "axis": "operations"}, cost={"tokens_per_correct_turn": 1486.0},
    )  # fmt: skip
    changed = {"previous_difference": -0.247, "previous_low": -0.3, "previous_high": -0.2, "verdict": "loss"}
    trends = {one.partition: changed | {"previous_date": date(2026, 11, 28)}}
    terminal = Plain(width=width)
    elsewhere = SimpleNamespace(**vars(one) | {"partition": replace(one.partition, suite="sdmx_sample")})
    for part in run_shown([one, elsewhere], trends, width):
        terminal.print(part, highlight=False, soft_wrap=isinstance(part, str))
    found = capsys.readouterr().out
    for figure in ("63.0% [56.2% to 69.2%]", "243", "−24.7 11-28", "1,486 tokens", "unreadable", "operations"):
        assert figure in found
    assert width < 76 or "  simulated-weak  63.0%" in found
    below = [line for line in found.splitlines() if line.startswith("look at:") and line.endswith("simulated")]
    assert below == ["look at:  simulated-weak: simulated"] * ("look at:" in found), "once for all suites"
    assert [line for line in found.splitlines() if len(line) > width] == [
        line for line in found.splitlines() if line.startswith("look at:") and len(line) > width
    ]


def test_the_leaderboard_is_a_table_at_100_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    macros = (Path(terminal.__file__).parents[1] / "store/published/macros.sql").read_text()
    listed = macros.partition("MACRO leaderboard(")[2].partition("FROM leaderboard_details")[0].partition("SELECT")[2]
    names = [part.split()[-1].removeprefix("d.") for part in re.sub("CASE.*?END", "", listed).split(",")]
    versions = [f"claude-opus-4-{n}-2026-11-29-thinking-high+step_by_step_with_examples" for n in range(6)]
    one = {"eval_date": date(2026, 11, 29), "scope": "drawn", "turns": 183_525, "simulated": True}
    rows = [[{"model_version": who, **one}.get(name, 0.87654321) for name in names] for who in versions]
    monkeypatch.setattr(console, "width", 100)
    print_rows([*names], rows, "table")
    lines = capsys.readouterr().out.splitlines()
    assert {"model_version", "accuracy", "low", "high", "usd_per_success"} < {*names}
    assert max(map(len, lines)) <= 100
    assert not lines[0].startswith("row"), "a line a version, not a line a value"
    told = [line.split() for line in lines if "2026-11-29" in line and "0.8765" in line]
    assert [row[-9:] for row in told] == [["2026-11-29", "drawn", "183,525", *["0.8765"] * 5, "True"]] * 6


def test_large_counts_have_separators_and_years_none(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows(["tokens_total", "year", "less"], [[183525, 2026, -10000]], "table")
    assert capsys.readouterr().out.split()[-3:] == ["183,525", "2026", "−10,000"]


def test_warnings_are_remarks_while_bars_are_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    log = logging.getLogger("eval_pipeline.asking.limits")
    with ProgressBars():
        log.warning("the endpoint failed %d times [bold]", 3)
        log.info("nothing special")
    assert capsys.readouterr().err == "warning: the endpoint failed 3 times [bold]\n"
    assert not logging.getLogger("eval_pipeline").handlers


def test_nothing_but_plain_text_goes_into_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the environment asks for colours, as that of many CI servers does."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    with (tmp_path / "out.txt").open("w") as file:
        Plain(file=file).print("[bold red]error:[/] [link=x]y[/]")
    assert (tmp_path / "out.txt").read_text() == "error: y\n"


class Keyboard(io.StringIO):
    """What somebody types."""

    def isatty(self) -> bool:
        return True


def test_what_nothing_brings_back_is_removed_only_if_somebody_says_yes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Keyboard("y\nn\n"))
    tending._ask("v", purge=True)
    with pytest.raises(typer.Abort):
        tending._ask("v", purge=True)
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    with pytest.raises(UsageError, match="--yes"):
        tending._ask("v", purge=True)


def test_pages_of_evaluations_and_one_of_each_suite_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compared = {"s": tmp_path / "s.html", "t": None}
    monkeypatch.setattr(reporting, "comparison_page_path", lambda workspace, suite: compared[suite])
    workspace: Any = SimpleNamespace(home=Home(tmp_path, tmp_path))
    places = [Partition(suite, version, date(2026, 1, 5)) for suite, version in (("s", "v"), ("s", "w"), ("t", "v"))]
    headlines: Any = [SimpleNamespace(partition=place) for place in places]
    named = [*_files(workspace, headlines)][1:]
    pages = [*(reporting.page_path(workspace.home, place) for place in places), compared["s"]]
    assert len(named) == len(pages)
    assert all(f" {page} " in line for page, line in zip(pages, named, strict=True))
