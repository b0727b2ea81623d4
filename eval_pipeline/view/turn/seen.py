"""A turn as a page shows it: all that the store holds about it, and how its track presents it."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from eval_pipeline.core.errors import EvalError
from eval_pipeline.core.ids import parse_json
from eval_pipeline.core.model import Attempt, Case, Evidence, Partition
from eval_pipeline.core.provenance import history_shown
from eval_pipeline.stages.attempts.rows import attempt_from_row
from eval_pipeline.store.published.ddl import quoted
from eval_pipeline.store.tables import arrow_schema
from eval_pipeline.suites.overrides import override_from_row, scored_gold
from eval_pipeline.tracks.base import Track
from eval_pipeline.tracks.capabilities import Seen, Shares
from eval_pipeline.view.evaluation import KEY, StoredEvaluation, model_version_of, of_earlier, table_of
from eval_pipeline.view.page import NotFoundError, Visit
from eval_pipeline.view.published import Row, StoreView
from eval_pipeline.workspace.workspace import Workspace

T = TypeVar("T")
_log = logging.getLogger(__name__)
_PLACE = ("case_id", "turn_id", "sample")
_OF_EVIDENCE = ("turn_id", "sample", "kind", "verdict", "value")


@dataclass(frozen=True, slots=True)
class TurnSeen:
    """A turn of an evaluation, in one sample.

    Attributes:
        visit: the request for it.
        result: its row of `turn_results`.
        track_row: its row of the track's own table; empty if there is none.
        gold: its row of `turns` as the suite has it now; empty if the suite no longer has it.
        of_case: rows of `attempts` at all turns of the case in the same sample, in order.
        attempts: those at this turn, with the `prompt` of each.
    """

    visit: Visit
    evaluation: StoredEvaluation
    result: Row
    track_row: Row
    gold: Row
    of_case: Sequence[Row]
    attempts: Sequence[Row]
    _read: dict[str, list[Row]] = field(default_factory=dict)

    @property
    def look(self) -> StoreView:
        """The store as the request sees it."""
        return self.visit.look

    @property
    def turn_id(self) -> str:
        """Public id of the turn."""
        return str(self.result["turn_id"])

    @property
    def sample(self) -> int:
        """Number of the sample."""
        return int(self.result["sample"])

    @property
    def changed_since(self) -> bool:
        """Whether the suite's question or gold has changed since."""
        return bool(self.gold) and any(self.gold[name] != self.result[name] for name in ("question", "expected"))

    def rows(self, table: str, order: str) -> list[Row]:
        """Returns the turn's rows of a table with one or more rows per turn and sample."""
        if table not in self._read:
            self._read[table] = _rows(self.look, self.evaluation.partition, table, self.result, order)
        return self._read[table]


def turn_seen(visit: Visit, evaluation: StoredEvaluation, turn_id: str, sample: int) -> TurnSeen:
    """Returns the turn with that id. Raises a NotFoundError if the evaluation has none."""
    look, partition = visit.look, evaluation.partition
    result = next(iter(_rows(look, partition, "turn_results", {"turn_id": turn_id, "sample": sample})), None)
    if result is None:
        raise NotFoundError(f"this evaluation has no turn '{turn_id}' in sample {sample}")
    # A track whose package is not installed has no table.
    of_track = evaluation.track_table
    track_rows = _rows(look, partition, of_track, result) if look.columns(of_track) else []
    gold = look.row("SELECT * FROM turns WHERE suite = ? AND turn_id = ?", [partition.suite, turn_id])
    case = {name: result[name] for name in ("case_id", "sample")}
    of_case = _rows(look, partition, "attempts", case, "turn_index, number")
    attempts = _with_prompts(look, partition, [row for row in of_case if row["turn_id"] == turn_id])
    return TurnSeen(visit, evaluation, result, next(iter(track_rows), {}), gold or {}, of_case, attempts)


def first_prompt(look: StoreView, partition: Partition, result: Row) -> Row | None:
    """Returns the first attempt at a turn in another evaluation, with its `prompt`; None if there is none.

    Args:
        look: the store.
        partition: the other evaluation.
        result: the turn's row of `turn_results` in any evaluation.
    """
    rows = _rows(look, partition, "attempts", result, "number LIMIT 1")
    return next(iter(_with_prompts(look, partition, rows)), None)


def _with_prompts(look: StoreView, partition: Partition, attempts: Sequence[Row]) -> list[Row]:
    # No join, because it would read all prompts.
    hashes = list({row["prompt_hash"] for row in attempts})
    marks = ", ".join("?" * len(hashes)) or "NULL"
    source = table_of(partition, "prompts")
    prompts = look.rows(f"SELECT prompt_hash, text FROM {source} WHERE prompt_hash IN ({marks})", hashes)
    texts = {row["prompt_hash"]: row["text"] for row in prompts}
    return [{**row, "prompt": texts.get(row["prompt_hash"])} for row in attempts]


def _rows(look: StoreView, partition: Partition, table: str, of: Row, order: str = "sample") -> list[Row]:
    """Returns the rows of a table about a turn, or about the turns of a case, whichever a row is of.

    The condition on the case's id lets DuckDB skip blocks: the ids of turns all begin alike, which makes their
    statistics useless, but those of cases differ.
    """
    named = {name: of[name] for name in _PLACE if name in of and name in look.columns(table)}
    key = dict(zip(KEY, (partition.suite, partition.model_version, partition.eval_date), strict=True)) | named
    where = " AND ".join(f"{name} = ?" for name in key) + of_earlier(partition)
    return look.rows(f"SELECT * FROM {table_of(partition, table)} WHERE {where} ORDER BY {order}", [*key.values()])


def by_track(seen: TurnSeen, shown: Callable[[Track, Seen], T]) -> tuple[T | None, str]:
    """Returns what a track makes of a turn, or None and the reason why it cannot; other parts of a page do not need it.

    Args:
        seen: the turn.
        shown: returns what is made of the track and the turn as the track sees it.
    """
    try:
        found = seen_by_track(seen)
        if found is None:
            return None, "The suite has this turn no more, so that its track cannot show it."
        return shown(*found), ""
    except EvalError as error:
        return None, f"The track cannot show this turn: {error}"
    except Exception as error:  # a track may be third-party code; its errors must not prevent the rest of the page
        _log.exception("%s of %s", shown.__name__, seen.turn_id)
        return None, f"The track cannot show this turn ({type(error).__name__})."


def seen_by_track(seen: TurnSeen) -> tuple[Track, Seen] | None:
    """Returns the track and the turn as the track sees it; None if the suite no longer has the turn.

    Raises:
        EvalError: the suite cannot be read.
    """
    evaluation, turn_id = seen.evaluation, seen.turn_id
    suite = evaluation.partition.suite
    track, shared = seen.look.remembered(("track of suite", suite), lambda: _track(seen.visit, suite))
    row = seen.look.row(
        "SELECT content, source_file, source_line FROM cases WHERE suite = ? AND case_id = ?",
        [suite, seen.result["case_id"]],
    )
    if row is None:
        return None
    case = _scored_case(seen, track, row, shared)
    turn = next((turn for turn in case.turns if turn.id == turn_id), None)
    if turn is None:
        return None
    made: dict[str, list[Attempt]] = {}
    for attempt in seen.of_case:
        made.setdefault(attempt["turn_id"], []).append(attempt_from_row(track, attempt))
    earlier = [(one, made.get(one.id, ())) for one in case.turns if one.index < turn.index]
    evidence = [
        Evidence(**{name: row[name] for name in _OF_EVIDENCE}, details=parse_json(row["details"]))
        for row in seen.rows("evidence", "kind")
    ]
    model = model_version_of(seen.look, evaluation.partition.model_version)
    settings = parse_json(model.get("settings") or "{}")
    found = Seen(
        case,
        turn,
        made.get(turn_id, ()),
        evidence,
        earlier,
        history_shown(settings, evaluation.partition.suite, recorded=bool(model.get("recorded"))),
        seen.track_row,
        parse_json(seen.gold.get("expected_result") or "null"),
    )
    return track, found


def _track(visit: Visit, suite: str) -> tuple[Track, Any]:
    """Returns the track of a suite, and the data that its cases share, from the store."""
    workspace = Workspace(visit.bench.home)
    source, track = workspace.suite(suite), workspace.track(suite)
    if not isinstance(track, Shares):
        return track, None
    tables = {}
    for table in track.suite_tables:
        schema = arrow_schema(table)
        columns = ", ".join(map(quoted, schema.names))
        found = visit.look.table(f"SELECT {columns} FROM {quoted(table.name)} WHERE suite = ?", [suite])
        tables[table.name] = found.cast(schema)
    return track, track.load_shared(tables, source.require().options, source.folder)


def _scored_case(seen: TurnSeen, track: Track, row: Row, shared: Any) -> Case:
    """Returns the case with the gold by which it is scored."""
    suite, content = seen.evaluation.partition.suite, row["content"]
    case = track.read_case(parse_json(content), suite, row["source_file"], row["source_line"], shared)
    found = seen.look.rows("SELECT * FROM gold_overrides WHERE suite = ? AND case_id = ?", [suite, case.id])
    overrides = [override_from_row(row) for row in found]
    return scored_gold(track, suite, overrides, {case.id: case}, {case.id: content}, shared).case(case)


@dataclass(frozen=True, slots=True)
class PageSection:
    """A section of the page about a turn.

    Attributes:
        name: its anchor.
        title: its heading.
        template: its template, which receives `seen`, `visit` and the result of `values`.
        values: returns the values for the template, or None to omit the section.
        exported: whether exported folders include it; such a section uses only this evaluation and has no forms.
    """

    name: str
    title: str
    template: str
    values: Callable[[TurnSeen], Mapping[str, Any] | None]
    exported: bool = False
