"""What models wrote is shown, never obeyed."""

import logging

import pytest

from eval_pipeline.cli.terminal import ProgressBars, print_rows


def test_control_characters_of_an_answer_do_not_reach_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows(["answer"], [["\x1b]0;owned\x07 \x1b[31mred\x00\x9b2J [bold]b[/bold]\tend"]], "table")
    shown = capsys.readouterr().out
    assert not {"\x1b", "\x07", "\x00", "\x9b"} & set(shown)
    assert "[bold]b[/bold]" in shown
    assert "owned" in shown


def test_csv_for_a_program_is_exact(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows(["answer"], [["\x1b[31mred"]], "csv")
    assert capsys.readouterr().out == "answer\n\x1b[31mred\n"


def test_warnings_are_remarks_while_bars_are_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    log = logging.getLogger("eval_pipeline.providers.limits")
    with ProgressBars():
        log.warning("the endpoint failed %d times [bold]", 3)
        log.info("nothing special")
    assert capsys.readouterr().err == "warning: the endpoint failed 3 times [bold]\n"
    assert not logging.getLogger("eval_pipeline").handlers
