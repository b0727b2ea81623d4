"""The verdicts on a run, which a CI job reports one by one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from eval_pipeline.core import shown
from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.model import Partition
from eval_pipeline.core.shown import Unit
from eval_pipeline.operations.runs.headline import Headline


@dataclass(frozen=True, slots=True)
class GateVerdict:
    """The result of one check of a suite and a model version.

    Attributes:
        subject: the model version, or the two model versions that were compared.
        name: what was checked, such as `correct >= 0.8`.
        failure: why the check failed; None if it passed.
        broke: whether it could not be checked at all because of an error.
    """

    suite: str
    subject: str
    name: str
    failure: str | None = None
    broke: bool = False


def evaluated(partitions: Sequence[Partition], done: Sequence[Partition], problems: Sequence[str]) -> list[GateVerdict]:
    """Returns a verdict for each evaluation: whether it was made and passed the checks of the pipeline.

    Args:
        partitions: the evaluations that were asked for.
        done: those that have results.
        problems: sentences that begin with the suite, or with the suite and the model version.
    """
    verdicts = []
    for found in partitions:
        starts = (f"{found.suite}, {found.model_version}: ", f"{found.suite}: ")
        own = [problem for problem in problems if problem.startswith(starts)]
        broke = found not in done
        failure = "\n".join(own) or ("it was not evaluated to its end" if broke else None)
        verdicts.append(GateVerdict(found.suite, found.model_version, "evaluation", failure, broke))
    named = tuple(f"{found.suite}{end}" for found in partitions for end in (": ", ", "))
    others = [problem for problem in problems if not problem.startswith(named)]
    return verdicts + [GateVerdict("run", "run", "run", problem, True) for problem in others]


def gate_verdicts(
    headlines: Sequence[Headline], gates: Mapping[str, float], unit: Callable[[str, str], Unit]
) -> list[GateVerdict]:
    """Returns a verdict for each evaluation and each gate METRIC=VALUE; `unit` is that of a suite's metric.

    Raises:
        UsageError: a gate names something that is not a metric.
    """
    verdicts = []
    for found in headlines:
        for metric, least in gates.items():
            if metric not in found.overall:
                raise UsageError(f"no metric '{metric}'; metrics: {', '.join(sorted(found.overall))}")
            mean = found.overall[metric]["mean"]
            suite, version = found.partition.suite, found.partition.model_version
            failure = None
            if mean is None or mean < least:
                failure = f"{suite}, {version}: {metric} is {_below(mean, least, unit(suite, metric))}"
            verdicts.append(GateVerdict(suite, version, f"{metric} >= {least:g}", failure))
    return verdicts


def _below(mean: float | None, least: float, unit: Unit) -> str:
    gate, told = shown.given(least, unit), "not known" if mean is None else shown.figure(mean, unit)
    just = "just under " if told == shown.figure(least, unit) else ""
    return f"{just}{told}, the gate is {gate}"
