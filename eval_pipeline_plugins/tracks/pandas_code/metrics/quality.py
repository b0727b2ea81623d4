"""How well the code is written."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from eval_pipeline.core.model import MetricResult
from eval_pipeline.core.values import value

if TYPE_CHECKING:
    from eval_pipeline_plugins.tracks.pandas_code.analysis.quality import QualityFinding
    from eval_pipeline_plugins.tracks.pandas_code.analysis.snippet import Snippet


@value
class Penalty:
    """The deduction for findings of one kind.

    Attributes:
        each: deduction per finding.
        most: maximum deduction for all findings together.
    """

    each: float
    most: float


PENALTIES = {
    "row-wise": Penalty(0.25, 0.75),
    "pyflakes": Penalty(0.1, 0.4),
    "bugbear": Penalty(0.05, 0.2),
    "pandas-vet": Penalty(0.05, 0.2),
    "pycodestyle": Penalty(0.02, 0.1),
    "complexity": Penalty(0.2, 0.4),
}
"""By kind of finding; the same as the table in docs/pandas.md."""

_PREFIXES = {"C901": "complexity", "PD": "pandas-vet", "F": "pyflakes", "B": "bugbear"}


def quality_score(written: "Snippet | None", findings: "Sequence[QualityFinding]") -> MetricResult:
    """Returns 1 − deductions, at least 0.

    Args:
        written: what the code does; None if there is no code or it does not parse, which gives 0.
        findings: the quality problems in it.

    Returns:
        The score; its `details` list the findings, each with its line, and the deductions by kind.
    """
    if written is None:
        return MetricResult(0.0, reason="there is no code that parses", details={"findings": [], "penalties": {}})
    kinds = [kind_of(finding.rule) for finding in findings]
    penalties = {
        kind: min(kinds.count(kind) * penalty.each, penalty.most)
        for kind, penalty in PENALTIES.items()
        if kind in kinds
    }
    listed = [{"rule": found.rule, "line": found.line, "message": found.message} for found in findings]
    return MetricResult(max(0.0, 1 - sum(penalties.values())), details={"findings": listed, "penalties": penalties})


def kind_of(rule: str) -> str:
    """Returns the kind of a rule, which is a key of `PENALTIES`."""
    from eval_pipeline_plugins.tracks.pandas_code.analysis.row_wise import ANTI_PATTERNS

    if rule in ANTI_PATTERNS:
        return "row-wise"
    return next((kind for prefix, kind in _PREFIXES.items() if rule.startswith(prefix)), "pycodestyle")
