"""What a model writes is read in time that grows with its length, not its square, and without running out of stack."""

from pathlib import Path

from eval_pipeline_tests.forked import forked


def test_long_texts_are_read_in_time(tmp_path: Path) -> None:
    log = tmp_path / "log"
    code = forked("eval_pipeline_tests.tracks.long_texts:main", (), {}, log).wait()
    assert (code, log.read_text().splitlines()[-1:]) == (0, ["all read"]), log.read_text()[-1000:]
