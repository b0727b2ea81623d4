"""Understanding and coverage: which requirements of the reference code an answer meets, as shown by running it."""

from collections.abc import Mapping

from eval_pipeline.core.model import Json, MetricResult

_NO_CODE = "the prediction is an answer without code"
_NO_EVIDENCE = (
    "the suite has no reference code for this turn whose result decides, or no variants of its tables, "
    "or explains no wrong answer (`mending_runs: 0`)"
)

_NOT_MENDED = "it takes more steps to the reference code than are looked for"


def understanding_score(closed_answer: bool, decides: bool, ran: bool, met: Mapping[str, Json] | None) -> MetricResult:
    """Returns the share of requirements that are met; an altered requirement counts as not met.

    Args:
        closed_answer: whether the final attempt is a recorded answer without code.
        decides: whether the suite has reference code for the turn and its result defines what is right.
        ran: whether the final attempt ran.
        met: `understanding`, `coverage`, `words` and `exact` of the explanation; None if the answer ran on no variant.
    """
    return _score("understanding", closed_answer, decides, ran, met)


def coverage_score(closed_answer: bool, decides: bool, ran: bool, met: Mapping[str, Json] | None) -> MetricResult:
    """Returns the share of requirements that are present, even if altered; arguments as for `understanding_score`."""
    return _score("coverage", closed_answer, decides, ran, met)


def _score(name: str, closed_answer: bool, decides: bool, ran: bool, met: Mapping[str, Json] | None) -> MetricResult:
    if closed_answer:
        return MetricResult(None, reason=_NO_CODE)
    if not decides:
        return MetricResult(None, reason=_NO_EVIDENCE)
    if not ran:
        return MetricResult(0.0, reason="it gives no result", details={"missing_requirements": []})
    if met is None:
        return MetricResult(None, reason=_NO_EVIDENCE)
    words = list(met["words"])
    unmended = _NOT_MENDED if not met["exact"] and met["understanding"] < 1 else None
    return MetricResult(met[name], reason="; ".join(words) or unmended, details={"missing_requirements": words})
