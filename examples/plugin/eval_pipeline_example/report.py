"""A report: the wrong turns as a list in Markdown."""

from pathlib import Path

from eval_pipeline.reports.evaluation import Evaluation
from eval_pipeline.reports.registry import Report

FILE = "wrong.md"


def write_wrong_turns(evaluation: Evaluation, folder: Path) -> None:
    """Writes the file."""
    rows = evaluation.results.select(["turn_id", "correct"]).to_pylist()
    lines = [f"- {row['turn_id']}" for row in rows if not row["correct"]]
    (folder / FILE).write_text("\n".join(["# Wrong turns", "", *lines, ""]), encoding="utf-8")


WRONG_TURNS = Report((FILE,), write_wrong_turns)
