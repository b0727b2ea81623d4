"""The forms of logs that other tools write. Add one with a module in `logs/` and a line here."""

from collections.abc import Mapping
from dataclasses import dataclass

ROWS = "predictions"
"""The form whose rows have our names, unless they are mapped; the others are logs of other tools."""


@dataclass(frozen=True, slots=True)
class LogForm:
    """A form of logs.

    Attributes:
        place: where its reader is: a function (file) → `Entry` values, which is called in a process of its own and
            raises InputError with file, line and field.
        what: such a file, for people.
    """

    place: str
    what: str


_LOGS = "eval_pipeline.operations.recorded.logs"
LOGS: Mapping[str, LogForm] = {
    "inspect": LogForm(f"{_LOGS}.inspect:read_inspect", "a log of Inspect (.eval or .json)"),
    "promptfoo": LogForm(f"{_LOGS}.promptfoo:read_promptfoo", "results of promptfoo (eval --output, .json or .jsonl)"),
    "lm-eval": LogForm(f"{_LOGS}.lm_eval:read_lm_eval", "samples of lm-evaluation-harness (--log_samples)"),
}
"""By name; the command `eval-pipeline import <name>` follows from it."""
