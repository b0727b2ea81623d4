"""The table `trends`: a model version's accuracy over time, and whether it has changed (docs/statistics.md)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from eval_pipeline.analysis.comparisons.compared import DRIFT_DOWN, DRIFT_UP, GAIN, LOSS, NO_CHANGE
from eval_pipeline.analysis.comparisons.evaluations import CompleteEvaluation
from eval_pipeline.analysis.comparisons.scored import NO_TURNS, ScoredEvaluation, TurnReader, paired
from eval_pipeline.analysis.comparisons.two_figures import verdict_of
from eval_pipeline.core.covering.coverage import Coverage
from eval_pipeline.statistics.pairs.paired import CorrectedTest, PairedDifference, holm, paired_difference
from eval_pipeline.store.record import RecordKey
from eval_pipeline.store.tables import COST_PER_CORRECT_ANSWER, STATISTICS
from eval_pipeline.workspace.workspace import Workspace

Row = dict[str, Any]
Earlier = dict[str, tuple[CompleteEvaluation, ScoredEvaluation]]
"""`first` and `previous` → an evaluation of the series and its turns."""
START, BREAK = "start", "break"


class Tested(NamedTuple):
    """A test of an evaluation against an earlier one; `corrected` is None if the test could not be made."""

    test: PairedDifference
    corrected: CorrectedTest | None

    @property
    def verdict(self) -> str | None:
        """`loss`, `gain` or `not_significant`."""
        return verdict_of(self.test, self.corrected, LOSS, GAIN) if self.corrected else None


class OpenLoss(NamedTuple):
    """An open loss, and the test of the newest evaluation against the one before the loss.

    Attributes:
        shown: the evaluation that showed it.
        against: the one before, whose accuracy must be regained.
        reference: the turns of `against`.
        test: of the newest evaluation, `against` first.
    """

    shown: CompleteEvaluation
    against: CompleteEvaluation
    reference: ScoredEvaluation
    test: PairedDifference

    def after(self, scored: ScoredEvaluation) -> "OpenLoss | None":
        """Returns the loss after a further evaluation; None if that one is no longer significantly worse."""
        both = paired(self.reference, scored)
        test = paired_difference(both.first["correct"], both.second["correct"], both.clusters)
        (corrected,) = holm([test.p_value])
        still = corrected is not None and verdict_of(test, corrected, LOSS, GAIN) == LOSS
        return self._replace(test=test) if still else None

    def columns(self) -> Row:
        """Returns the columns of `trends` about the loss."""
        dates = (self.shown.partition.eval_date, self.against.partition.eval_date)
        return dict(zip(_NO_OPEN_LOSS, (*dates, self.test.difference, self.test.p_value), strict=True))


_NO_OPEN_LOSS: Row = dict.fromkeys(("open_loss_date", "open_loss_against", "open_loss_difference", "open_loss_p_value"))


def trend_rows(
    workspace: Workspace, series: Sequence[CompleteEvaluation], reader: TurnReader, kept: Sequence[Row] = ()
) -> Iterator[Row]:
    """Yields one row per date of a model version, in order; the first ones are `kept`, if they are known already."""
    earlier: Earlier = {}
    # With the last known served model, so that unknown ones do not hide a change.
    before: CompleteEvaluation | None = None
    lost: OpenLoss | None = None
    for place, found in enumerate(series):
        changed = found.changes(before) if before else []
        if changed:
            earlier, lost = {}, None
        scored = NO_TURNS  # one alone is compared with nothing, and a row that is kept has been compared
        if place < len(kept):
            yield kept[place]
        else:
            if place == len(kept) and earlier:
                earlier, lost = _read_again(earlier, reader), _open_loss(kept[-1], series, reader)
            scored = reader.read(found) if len(series) > 1 else scored
            tests = night_tests(scored, {name: held for name, (_, held) in earlier.items()})
            row = _series_columns(workspace, found) | _coverage_columns(reader.coverage(found))
            row |= {"break_reason": ", ".join(changed) or None}
            row |= found.served.columns(before.served if before else None)
            for name in ("previous", "first"):
                row |= _against(name, earlier[name][0] if name in earlier else None, tests.get(name))
            reasons = dict.fromkeys(tested.test.reason for tested in tests.values() if tested.test.reason)
            verdict = night_verdict(tests) if earlier else BREAK if changed else START
            lost = lost.after(scored) if lost else None
            if verdict == LOSS:  # a further loss replaces an open one: the higher accuracy must be regained
                now = tests["previous"].test
                lost = lost._replace(shown=found) if lost else OpenLoss(found, *earlier["previous"], now)
            row |= {"verdict": verdict, "reason": "; ".join(filter(None, reasons)) or None}
            yield row | (lost.columns() if lost else _NO_OPEN_LOSS)
        here = (found, scored)
        earlier = {"previous": here, "first": earlier.get("first", here)}
        before = replace(found, served=found.served.or_before(before.served)) if before else found


def _read_again(earlier: Earlier, reader: TurnReader) -> Earlier:
    """Returns the same evaluations with their turns; one that is both the first and the previous is read once."""
    (first, _), (previous, _) = earlier["first"], earlier["previous"]
    read = first, reader.read(first)
    return {"previous": read if previous is first else (previous, reader.read(previous)), "first": read}


def _open_loss(row: Row, series: Sequence[CompleteEvaluation], reader: TurnReader) -> OpenLoss | None:
    """Returns the loss that is open in a row of `trends`."""
    if row["open_loss_date"] is None:
        return None
    dated = {found.partition.eval_date: found for found in series}
    shown, against = dated[row["open_loss_date"]], dated[row["open_loss_against"]]
    reference = reader.read(against)
    both = paired(reference, reader.read(shown))
    test = paired_difference(both.first["correct"], both.second["correct"], both.clusters)
    return OpenLoss(shown, against, reference, test)


def night_tests(scored: ScoredEvaluation, earlier: Mapping[str, ScoredEvaluation]) -> dict[str, Tested]:
    """Tests an evaluation against several earlier ones, with p-values corrected by Holm.

    On the second date of a series, `previous` and `first` are the same evaluation, so there is only one test.
    """
    different = {id(found): found for found in earlier.values()}
    tests = {}
    for name, found in different.items():
        both = paired(found, scored)
        tests[name] = paired_difference(both.first["correct"], both.second["correct"], both.clusters)
    corrected = dict(zip(tests, holm([test.p_value for test in tests.values()]), strict=True))
    return {name: Tested(tests[id(found)], corrected[id(found)]) for name, found in earlier.items()}


def night_verdict(tests: Mapping[str, Tested]) -> str | None:
    """Summarises the tests in one word; a change since the previous date takes precedence. None without a test."""
    words = {name: tested.verdict for name, tested in tests.items()}
    if words.get("previous") in {LOSS, GAIN}:
        return words["previous"]
    if not any(words.values()):
        return None
    return {LOSS: DRIFT_DOWN, GAIN: DRIFT_UP}.get(words.get("first") or "", NO_CHANGE)


def _against(name: str, earlier: CompleteEvaluation | None, found: Tested | None) -> Row:
    test, corrected = found if found else (None, None)
    low, high = test.interval(corrected.alpha) if test and corrected else (None, None)
    return {
        f"{name}_date": earlier.partition.eval_date if earlier else None,
        f"{name}_n": test.n if test else None,
        f"{name}_difference": test.difference if test else None,
        f"{name}_low": low,
        f"{name}_high": high,
        f"{name}_p_value": test.p_value if test else None,
        f"{name}_p_corrected": corrected.p_value if corrected else None,
        f"{name}_broken": test.broken if test else None,
        f"{name}_fixed": test.fixed if test else None,
        f"{name}_verdict": found.verdict if found else None,
    }


def _coverage_columns(coverage: Coverage) -> Row:
    """Returns the coverage columns without `scored`, which is in the column `n`."""
    return {name: count for name, count in coverage.columns().items() if name != "scored"}


def _series_columns(workspace: Workspace, found: CompleteEvaluation) -> Row:
    """Returns the columns taken from the aggregates of the date."""
    record, key = workspace.record, RecordKey.of(found.partition)
    columns = ["metric", "split", "n", "clusters", "mean", "low", "high"]
    rows = record.read(STATISTICS, key, columns).to_pylist()
    correct = next(row for row in rows if (row["metric"], row["split"]) == ("correct", "all"))
    cost = record.read(COST_PER_CORRECT_ANSWER, key, ["tokens_total", "usd_total"]).to_pylist()[0]
    return {
        "model_version": found.partition.model_version,
        "eval_date": found.partition.eval_date,
        "simulated": found.simulated,
        "scope": found.scope,
        "n": correct["n"],
        "clusters": correct["clusters"],
        "accuracy": correct["mean"],
        "low": correct["low"],
        "high": correct["high"],
        **cost,
    }
