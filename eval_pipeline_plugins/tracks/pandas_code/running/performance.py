"""CPU time and memory of generated and of reference code, measured in the sandbox."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from eval_pipeline.sandbox.layers import Layer
from eval_pipeline.sandbox.python_sandbox import Assertions
from eval_pipeline.sandbox.returned.outcomes import Measurement, SnippetFailed
from eval_pipeline_plugins.tracks.pandas_code.metrics.performance import NEGLIGIBLE_MIB, NEGLIGIBLE_MS, part
from eval_pipeline_plugins.tracks.pandas_code.running.runner import sandbox

MIB = 1024 * 1024
NEGLIGIBLE = Measurement(seconds=NEGLIGIBLE_MS / 1000, peak_bytes=int(NEGLIGIBLE_MIB * MIB), runs=1)
"""Below these values, differences mean nothing (docs/pandas.md)."""
_NOISE = 0.5
"""From here up to 1, the time's part of the score may be caused by other work on the machine."""
_CONFIRMATIONS = 2


@dataclass(frozen=True, slots=True)
class Measured:
    """The cost of generated and reference code on the same tables."""

    generated: Measurement
    reference: Measurement


def measure(
    generated: str,
    reference: str,
    tables: Mapping[str, Path],
    runs: int,
    tests: Assertions | None = None,
    layer: Layer | None = None,
) -> Measured | SnippetFailed:
    """Runs both in turns, with fewer runs if the first ones show that both are negligible.

    Equal code has equal cost and is run once. The time for converting the result to plain data is not the code's own
    cost, but it is part of the measurement: code that could detect a run whose result is not needed might do nothing in
    it. So the reference code also runs without converting its result, and the time saved is subtracted from both. If
    the generated code seems a little too slow, all runs are repeated, at most twice, because a busy machine must not
    lower a score.

    Raises:
        NoSandboxError: this machine cannot run them.
    """
    if generated.strip() == reference.strip():
        (same,) = sandbox(layer).measure([reference], tables, repeats=1, tests=tests)
        return same if isinstance(same, SnippetFailed) else Measured(same, same)
    codes = [generated, reference, *([] if tests else [f"{reference}\nresult = None"])]
    so_far: list[Measurement] = []
    for _ in range(1 + _CONFIRMATIONS):
        rounds = sandbox(layer).measure(codes, tables, repeats=runs, negligible=NEGLIGIBLE, tests=tests)
        failed = next((one for one in rounds if isinstance(one, SnippetFailed)), None)
        if failed is not None:
            return failed
        done = [one for one in rounds if isinstance(one, Measurement)]
        so_far = [Measurement.least(pair) for pair in zip(so_far, done, strict=True)] if so_far else done
        # What tests ask for is told in pieces, of both alike.
        generated_cost, reference_cost = (so_far[0], so_far[1]) if tests else without_telling(*so_far)
        if not _NOISE <= part(1000 * reference_cost.seconds, 1000 * generated_cost.seconds, NEGLIGIBLE_MS) < 1:
            break
    return Measured(generated_cost, reference_cost)


def without_telling(
    generated: Measurement, reference: Measurement, bare: Measurement
) -> tuple[Measurement, Measurement]:
    """Returns both measurements without the CPU time of converting their results to plain data.

    Args:
        generated: the generated code; its conversion is assumed to take as long as the reference's, scaled by size, but
            never longer, so that a result that is too large still costs.
        reference: the reference code, including the conversion of its result.
        bare: the reference code without that conversion.
    """
    telling = max(0.0, reference.seconds - bare.seconds)
    share = min(1.0, generated.result_bytes / reference.result_bytes)
    mine = replace(generated, seconds=max(0.0, generated.seconds - share * telling))
    return mine, replace(reference, seconds=reference.seconds - telling)
