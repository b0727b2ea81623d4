"""CPU time and memory of generated code beside the reference code, measured in the sandbox."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from eval_pipeline.sandbox import Measurement, SnippetFailed
from eval_pipeline.tracks.pandas_code.metrics.performance import NEGLIGIBLE_MIB, NEGLIGIBLE_MS, part
from eval_pipeline.tracks.pandas_code.runner import sandbox

MIB = 1024 * 1024
NEGLIGIBLE = Measurement(seconds=NEGLIGIBLE_MS / 1000, peak_bytes=int(NEGLIGIBLE_MIB * MIB), runs=1)
"""Below these, differences say nothing (docs/pandas.md)."""
_NOISE = 0.5
"""A time's part from here up to 1 may come from other work on the machine."""
_CONFIRMATIONS = 2


@dataclass(frozen=True, slots=True)
class Measured:
    """What generated and reference code took on the same tables."""

    generated: Measurement
    reference: Measurement


def measure(generated: str, reference: str, tables: Mapping[str, Path], runs: int) -> Measured | SnippetFailed:
    """Runs both in turns, fewer times than asked for where the first ones show that both are negligible.

    The same code costs the same, and is run once. Making plain data of the result is no work of the code, but part of
    what is measured, since code that could tell a run whose result nobody wants would do nothing in it. So the
    reference code runs without a result too: what it then spares is taken off both. Where the generated code seems a
    little too slow, all are run again as many times, at most twice: a busy machine must not cost a score.

    Raises:
        NoSandboxError: nothing here can run them.
    """
    if generated.strip() == reference.strip():
        (same,) = sandbox().measure([reference], tables, repeats=1)
        return same if isinstance(same, SnippetFailed) else Measured(same, same)
    codes = [generated, reference, f"{reference}\nresult = None"]
    so_far: list[Measurement] = []
    for _ in range(1 + _CONFIRMATIONS):
        rounds = sandbox().measure(codes, tables, repeats=runs, negligible=NEGLIGIBLE)
        failed = next((one for one in rounds if isinstance(one, SnippetFailed)), None)
        if failed is not None:
            return failed
        done = [one for one in rounds if isinstance(one, Measurement)]
        so_far = [Measurement.least(pair) for pair in zip(so_far, done, strict=True)] if so_far else done
        generated_cost, reference_cost = without_telling(*so_far)
        if not _NOISE <= part(1000 * reference_cost.seconds, 1000 * generated_cost.seconds, NEGLIGIBLE_MS) < 1:
            break
    return Measured(generated_cost, reference_cost)


def without_telling(
    generated: Measurement, reference: Measurement, bare: Measurement
) -> tuple[Measurement, Measurement]:
    """Generated and reference code without the CPU time of making plain data of their results.

    Args:
        generated: its result's time is taken to be that of the reference's, by size; never more than that, so that a
            large result of its own is paid for.
        reference: with its result.
        bare: the reference code without one.
    """
    telling = max(0.0, reference.seconds - bare.seconds)
    share = min(1.0, generated.result_bytes / reference.result_bytes)
    mine = replace(generated, seconds=max(0.0, generated.seconds - share * telling))
    return mine, replace(reference, seconds=reference.seconds - telling)
