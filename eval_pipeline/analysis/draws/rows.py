"""Makes the rows about looks at drawn evaluations: those of `sampled_estimates`, and the one in `statistics`."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eval_pipeline.analysis.draws.looks import Draw, Look, SuiteEstimate

Row = dict[str, Any]
METHOD = "adaptive"


def look_rows(draw: "Draw") -> list[Row]:
    """Returns the rows of `sampled_estimates`."""
    rows: list[Row] = []
    for look in draw.looks:
        last = look is draw.looks[-1]
        rows.append(_row(draw, look, "correct", look.correct, last=last))
        if look.difference is not None:
            rows.append(_row(draw, look, "difference", look.difference, last=last))
    return rows


def drawn_row(look: "Look") -> Row:
    """Returns the row of `statistics` for the share of right turns of the whole suite."""
    return {
        "metric": "correct",
        "split": "all",
        "split_value": "all",
        "n": look.turns,
        "clusters": look.cases,
        "mean": look.correct.value,
        "se": None,
        "low": look.correct.low,
        "high": look.correct.high,
        "method": METHOD,
        "failures": 0,
        "mean_without_failures": None,
        "reason": None,
    }


def _row(draw: "Draw", look: "Look", metric: str, figure: "SuiteEstimate", *, last: bool) -> Row:
    design = draw.design
    shift = look.correct.value - look.difference.value if look.difference and metric == "difference" else 0.0
    low, high = look.naive_low, look.naive_high
    return {
        "look": look.number,
        "looks": look.looks,
        "metric": metric,
        "until": design.until.label(),
        "baseline": None if design.baseline is None else design.evaluations[design.baseline],
        "turns": look.turns,
        "cases": look.cases,
        "suite_turns": design.turns,
        "evaluations": len(design.evaluations),
        "value": figure.value,
        "low": figure.low,
        "high": figure.high,
        "effective": look.effective,
        "naive": look.naive - shift,
        "naive_low": None if low is None else low - shift,
        "naive_high": None if high is None else high - shift,
        "usd": look.usd,
        "verdict": look.verdict,
        "stopped": draw.stopped if last else None,
    }
