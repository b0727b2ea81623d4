"""Comparisons of chosen evaluations over chosen suites, as shown by `eval-pipeline compare`."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path

from eval_pipeline.analysis.comparisons.chosen.baselines import read_baseline, with_turns, write_baseline
from eval_pipeline.analysis.comparisons.chosen.causes import causes_of, prompt_difference
from eval_pipeline.analysis.comparisons.chosen.matrix import Matrix, figures_of, matrix_of
from eval_pipeline.analysis.comparisons.chosen.references import ReadReference, chosen, names_of, parse_reference
from eval_pipeline.analysis.comparisons.chosen.sides import Side
from eval_pipeline.analysis.comparisons.evaluations import evaluated_at, evaluations_of
from eval_pipeline.analysis.comparisons.metrics import metric_rows
from eval_pipeline.analysis.comparisons.pairs import Row, comparison_rows, every_pair
from eval_pipeline.analysis.comparisons.scored import Further, TurnReader
from eval_pipeline.core.errors import InputError, UsageError
from eval_pipeline.core.model import Partition
from eval_pipeline.store.tables import MODEL_VERSIONS, STATISTICS
from eval_pipeline.tracks.capabilities import ComparesMetrics
from eval_pipeline.tracks.scored.turns_table import turns_table
from eval_pipeline.workspace.evaluations import evaluations
from eval_pipeline.workspace.workspace import Workspace

Sides = Mapping[str, Sequence[Side]]
"""The evaluations that are compared, by suite."""


def referenced(workspace: Workspace, suites: Sequence[str], texts: Sequence[str]) -> dict[str, list[Side]]:
    """Returns the evaluations that references name, by suite and in their order, each once.

    Raises:
        UsageError: a reference cannot be read, or one that names a certain evaluation (by date, id, file, or as the one
            before the latest) names none on these suites.
    """
    references = parse_references(workspace, texts)
    files = {found.text: read_baseline(found.file) for found in references if found.file is not None}
    names = None if any(reference.id for reference in references) else {found.model_version for found in references}
    found: dict[str, list[Side]] = {suite: [] for suite in suites}
    missing = dict.fromkeys(references)
    for suite in suites:
        sides = sides_of(workspace, suite, names)
        for reference in references:
            held = files.get(reference.text)
            side = _chosen(reference, sides) if held is None else _of_file(held, suite)
            if side is not None:
                missing.pop(reference, None)
                found[suite] += [side] * all(side is not other for other in found[suite])
    for reference in missing:
        if not _is_plain(reference):
            raise UsageError(_names_none(reference, suites, files.get(reference.text, ())))
    return {suite: sides for suite, sides in found.items() if sides}


def parse_references(workspace: Workspace, texts: Sequence[str]) -> list[ReadReference]:
    """Parses references to evaluations of a home; retired model versions are known from the record."""
    names = {key.model_version or "" for key in workspace.record.partitions(MODEL_VERSIONS)}
    with suppress(InputError):  # told elsewhere; what is on record can be compared all the same
        names |= workspace.model_versions.keys()
    return [parse_reference(text, names) for text in texts]


def sides_of(workspace: Workspace, suite: str, model_versions: Collection[str] | None = None) -> list[Side]:
    """Returns every complete evaluation of a suite, earlier ones of a date too, of some model versions or all."""
    listed = evaluations_of(workspace, suite)
    newest = {one.partition: one for several in listed.values() for one in several}
    names = listed.keys() if model_versions is None else model_versions & listed.keys()
    found = []
    for told in (one for name in sorted(names) for one in evaluations(workspace, suite, name)):
        evaluated = newest.get(told.partition) if told.newest else evaluated_at(workspace, told.partition)
        found += [Side(evaluated, told)] if evaluated is not None else []
    return found


def _chosen(reference: ReadReference, sides: Sequence[Side]) -> Side | None:
    known = [side.known for side in sides]
    found = chosen(reference, known)
    return next((side for side, one in zip(sides, known, strict=True) if one is found), None)


def _of_file(held: Sequence[Side], suite: str) -> Side | None:
    return next((side for side in held if side.suite == suite), None)


def _is_plain(reference: ReadReference) -> bool:
    return reference.text == reference.model_version


def _names_none(reference: ReadReference, suites: Sequence[str], held: Sequence[Side]) -> str:
    where = ", ".join(suites)
    if reference.file is not None:
        of = ", ".join(dict.fromkeys(side.suite for side in held)) or "nothing"
        return f"{reference.text}: the baseline file is of {of}, and not of {where}"
    if reference.id:
        return f"there is no complete evaluation '{reference.id}' of {where}"
    which = "before its latest one" if reference.when == "before" else f"of {reference.when}"
    return f"'{reference.model_version}' has no complete evaluation {which} on {where}"


def comparisons_of(workspace: Workspace, sides: Sides, asked: Sequence[str]) -> dict[str, list[Row]]:
    """Returns rows as in `model_comparisons`, by suite, for every pair of evaluations in the given order.

    They also have names that tell apart two evaluations of one model version (`name_a`, `name_b`), the evaluations' ids
    (`evaluation_a`, …), whether they are earlier ones of their dates (`earlier_a`, …), the baseline files they come
    from (`file_a`, …), in what they were made differently (`causes`), and how their prompts differ
    (`prompt_difference`, a unified diff). The p-values are corrected over all suites, because they are shown together.
    The rows come from the record, so nothing has to be published. Suites with fewer than two of the evaluations are
    left out.

    Args:
        workspace: the workspace of the home.
        sides: the evaluations.
        asked: the references that named them.

    Raises:
        UsageError: no suite has two of them.
    """
    pairs = [pair for found in sides.values() for pair in _named_pairs(found)]
    if not pairs:
        raise UsageError(
            f"no suite has evaluations of two of {', '.join(dict.fromkeys(asked))}; `eval-pipeline run` makes them"
        )
    names = [(first, second) for (first, _), (second, _) in pairs]
    evaluated = [(a.evaluated, b.evaluated) for (_, a), (_, b) in pairs]
    rows = comparison_rows(evaluated, TurnReader(workspace), names)
    told = [(a.suite, row | _told(*pair)) for pair, row in zip(pairs, rows, strict=True) for (_, a), _ in [pair]]
    return {suite: [row for _, row in group] for suite, group in groupby(told, key=lambda found: found[0])}


_Named = tuple[str, Side]


def _named(sides: Sequence[Side]) -> list[_Named]:
    return list(zip(names_of([side.known for side in sides]), sides, strict=True))


def _named_pairs(sides: Sequence[Side]) -> list[tuple[_Named, _Named]]:
    return every_pair(_named(sides))


def _told(first: _Named, second: _Named) -> Row:
    """Returns what the rows tell beside the columns of `model_comparisons`."""
    (_, a), (_, b) = first, second
    found: Row = {"causes": "; ".join(causes_of(a.told, b.told, b.served_change(a))) or None}
    found["prompt_difference"] = "\n".join(prompt_difference(a.told, b.told)) or None
    for letter, (name, side) in zip("ab", (first, second), strict=True):
        known = side.known
        found |= {
            f"name_{letter}": name,
            f"evaluation_{letter}": known.id,
            f"earlier_{letter}": bool(side.evaluated.partition.evaluation),
            f"file_{letter}": known.file or None,
        }
    return found


def metrics_of(workspace: Workspace, sides: Sides) -> dict[str, list[Row]]:
    """Returns rows as in `metric_comparisons`, by suite, for every pair in the given order, with names as above."""
    reader, found = TurnReader(workspace), {}
    for suite, several in sides.items():
        pairs = _named_pairs(several)
        rows = metric_rows([(a.evaluated, b.evaluated) for (_, a), (_, b) in pairs], reader, workspace.track(suite))
        if rows:
            a_pair = len(rows) // len(pairs)
            found[suite] = [row | _told(*pairs[place // a_pair]) for place, row in enumerate(rows)]
    return found


def matrices_of(workspace: Workspace, sides: Sides, rows: Mapping[str, Sequence[Row]]) -> dict[str, Matrix]:
    """Returns the matrix of each suite that has comparisons; `rows` are those of `comparisons_of`."""
    reader = TurnReader(workspace)
    return {
        suite: matrix_of(
            [figures_of(s.known, name, reader.read(s.evaluated)) for name, s in _named(sides[suite])], found
        )
        for suite, found in rows.items()
    }


def in_use(workspace: Workspace) -> list[str]:
    """Returns the model versions on record that are not retired."""
    names = {key.model_version or "" for key in workspace.record.partitions(STATISTICS)}
    return [name for name in sorted(names) if not workspace.is_retired(name)]


def save_baseline(workspace: Workspace, sides: Sides, path: Path) -> None:
    """Writes a baseline file with one evaluation of each suite.

    Raises:
        UsageError: there are none, or two of a suite, or the file cannot be written.
    """
    if not sides or any(len(found) > 1 for found in sides.values()):
        raise UsageError("a baseline file holds one evaluation of each suite; name one that the record has complete")
    write_baseline(path, list(_with_turns(workspace, sides)))


def _with_turns(workspace: Workspace, sides: Sides) -> Iterator[Side]:
    for suite, (side,) in sides.items():
        track = workspace.track(suite)
        further = Further(turns_table(track), track.compared_metrics) if isinstance(track, ComparesMetrics) else None
        yield with_turns(side, TurnReader(workspace), further)


def compare_with(workspace: Workspace, partition: Partition, baseline: str) -> Row | None:
    """Compares an evaluation with a baseline (any reference), the baseline first.

    Returns None if the baseline is a model version without an evaluation of the suite.

    Raises:
        UsageError: the evaluation is incomplete, or the baseline names a certain one that is not there.
    """
    own = sides_of(workspace, partition.suite, {partition.model_version})
    ours = next((one for one in own if one.evaluated.partition == partition), None)
    if ours is None:
        raise UsageError(f"the record has no complete evaluation of {partition}")
    theirs = referenced(workspace, [partition.suite], [baseline]).get(partition.suite)
    if theirs is None:
        return None
    (pair,) = _named_pairs([theirs[0], ours])
    names = [(pair[0][0], pair[1][0])]
    (row,) = comparison_rows([(theirs[0].evaluated, ours.evaluated)], TurnReader(workspace), names)
    return row | _told(*pair)
