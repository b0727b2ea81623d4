"""CPU time and memory of generated code beside the reference code, measured in the sandbox."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from eval_pipeline.sandbox import Failed, Measurement
from eval_pipeline.tracks.pandas_code.runner import sandbox

MIB = 1024 * 1024
NEGLIGIBLE = Measurement(seconds=0.010, peak_bytes=10 * MIB, runs=1)
"""Below these, differences say nothing (spec/pandas.md)."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What generated and reference code took on the same tables."""

    generated: Measurement
    reference: Measurement


def measure(generated: str, reference: str, tables: Mapping[str, Path], runs: int) -> Measured | Failed:
    """Runs both in turns, fewer times than asked for where the first ones show that both are negligible.

    The same code costs the same, and is run once.

    Raises:
        NoSandboxError: nothing here can run them.
    """
    if generated.strip() == reference.strip():
        (same,) = sandbox().measure([reference], tables, repeats=1)
        return same if isinstance(same, Failed) else Measured(same, same)
    mine, theirs = sandbox().measure([generated, reference], tables, repeats=runs, negligible=NEGLIGIBLE)
    if isinstance(mine, Failed):
        return mine
    return theirs if isinstance(theirs, Failed) else Measured(mine, theirs)
