"""Formats of other tools' logs. To add one, add a module in `logs/` and a line here."""

from collections.abc import Mapping
from dataclasses import dataclass

ROWS = "predictions"
"""The format with our field names, unless mapped; all others are logs of other tools."""


@dataclass(frozen=True, slots=True)
class LogForm:
    """A log format.

    Attributes:
        place: place of its reader: a function from a file to `Entry` values. It is called in a child process and raises
            InputError with file, line and field.
        what: description of such a file, for people.
        folders: whether a folder of such files can be read, too.
    """

    place: str
    what: str
    folders: bool = False


_LOGS = "eval_pipeline.operations.recorded.logs"
LOGS: Mapping[str, LogForm] = {
    "inspect": LogForm(f"{_LOGS}.inspect:read_inspect", "a log of Inspect (.eval or .json)"),
    "promptfoo": LogForm(f"{_LOGS}.promptfoo:read_promptfoo", "results of promptfoo (eval --output, .json or .jsonl)"),
    "statgpt-answers": LogForm(
        f"{_LOGS}.statgpt:read_statgpt_answers",
        "artefacts of StatGPT's evaluation jobs (a .json, a folder of them, or .jsonl)",
        folders=True,
    ),
    "lm-eval": LogForm(f"{_LOGS}.lm_eval:read_lm_eval", "samples of lm-evaluation-harness (--log_samples)"),
}
"""Formats by name; each gives a command `eval-pipeline import <name>`."""
