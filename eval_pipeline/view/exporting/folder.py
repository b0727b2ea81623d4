"""Writes the exported folder.

It contains the list with its data and script, and a page per turn made with the workbench's templates.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from starlette.requests import Request

from eval_pipeline.chain.evaluation import chain_of
from eval_pipeline.chain.runner import run_stage
from eval_pipeline.core.errors import StoreError, UsageError
from eval_pipeline.core.home import Home
from eval_pipeline.core.model import Partition
from eval_pipeline.reports.places.folder import replace_folder
from eval_pipeline.reports.places.paths import (
    DATA,
    INDEX,
    MARKER,
    PAGE,
    TURNS,
    exported_folder,
    report_folder,
    turn_page,
)
from eval_pipeline.store.published.ddl import text
from eval_pipeline.view.drawing import render, static_file
from eval_pipeline.view.evaluation import KEY, StoredEvaluation, evaluation_of, model_version_of
from eval_pipeline.view.exporting.data import MOST_SEARCHED, ExportedTurns, chosen_turns, data_script
from eval_pipeline.view.filtering.only import of_evaluation
from eval_pipeline.view.page import Bench, Visit
from eval_pipeline.view.published import Row, StoreView
from eval_pipeline.view.turn.around import Around
from eval_pipeline.view.turn.parts import sections_of
from eval_pipeline.view.turn.seen import TurnSeen, turn_seen
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.progress import SILENT, counted
from eval_pipeline.workspace.workspace import Progress, Workspace

BATCH = 200
"""How many turns are read together."""
_OF_TURN = {*KEY, "turn_id"}
_ATTEMPTS, _PROMPTS = "attempts", "prompts"


def narrow_to_next(look: StoreView, evaluation: StoredEvaluation, rows: Sequence[Row]) -> int:
    """Limits the request to as many of the first rows as memory allows, and returns their number.

    Raises:
        StoreError: memory is not even enough for one.
    """
    size = min(BATCH, len(rows))
    while True:
        try:
            narrow(look, evaluation, rows[:size])
            return size
        except StoreError:
            if size == 1:
                raise
            size //= 2


def narrow(look: StoreView, evaluation: StoredEvaluation, rows: Sequence[Row]) -> None:
    """Limits the tables of turns, cases and prompts to what these rows need, for the rest of the request."""
    of_evaluation_now = of_evaluation(evaluation, "r")
    turns = f"r.turn_id IN ({_listed(row['turn_id'] for row in rows)})"
    cases = f"r.case_id IN ({_listed({row['case_id'] for row in rows})})"
    suite = f"r.suite = {text(evaluation.partition.suite)}"
    for table in _tables_of_turns(look):
        # Earlier turns of the same conversations are shown too, whether they were drawn or not.
        chosen = cases if table == _ATTEMPTS else turns
        look.shadow(table, f"{of_evaluation_now} AND {chosen}")
    look.shadow("cases", f"{suite} AND {cases}")
    look.shadow("turns", f"{suite} AND {turns}")
    look.shadow(_PROMPTS, f"r.prompt_hash IN (SELECT prompt_hash FROM {_ATTEMPTS})")


def _tables_of_turns(look: StoreView) -> Sequence[str]:
    """Returns the tables that have rows per turn of an evaluation.

    Views need no change because they use these tables.
    """
    marks = ", ".join("?" * len(_OF_TURN))
    found = look.rows(
        f"""SELECT c.table_name FROM duckdb_columns() AS c SEMI JOIN duckdb_tables() AS t
            ON t.database_name = c.database_name AND t.schema_name = c.schema_name AND t.table_name = c.table_name
        WHERE c.database_name = 'store' AND c.schema_name = 'main' AND c.column_name IN ({marks})
        GROUP BY c.table_name HAVING count(*) = {len(_OF_TURN)} ORDER BY c.table_name = '{_ATTEMPTS}' DESC""",
        sorted(_OF_TURN),
    )
    return [row["table_name"] for row in found]


def _listed(ids: Iterable[str]) -> str:
    return ", ".join(map(text, sorted(set(ids))))


MOST_PAGE = 400_000
"""The most bytes of a turn's page; longer ones omit sections, so that a folder takes at most two gigabytes."""
_LEFT_OUT_FIRST = ("conversation", "judgement", "metrics", "cards", "attempts")
_SCRIPT = "list.js"
_STYLE = "style.css"


@dataclass(frozen=True, slots=True)
class Exported:
    """The result of an export.

    Attributes:
        turns: a sentence on how many turns were exported.
        size: bytes of all files.
        shortened: how many pages omit sections.
    """

    folder: Path
    partition: Partition
    turns: str
    size: int
    shortened: int


def export_evaluation(
    home: Home, suite: str, model_version: str, day: date | None, folder: Path | None, progress: Progress = SILENT
) -> Exported:
    """Writes an evaluation of the published store as a folder; without a date, the newest one.

    Args:
        home: the home with the store.
        suite: suite of the evaluation.
        model_version: model version of the evaluation.
        day: date of the evaluation.
        folder: folder to write; None for one in the home's exports, where a purge of the model version finds it.
        progress: is told about the turns.

    Raises:
        UsageError: there is no such evaluation, or the folder contains something else.
        StoreError: there is no store, or a file cannot be written.
    """
    with Bench.of(home) as bench, bench.published.look() as look:
        visit = _visit(bench, look, suite, model_version, day)
        evaluation = evaluation_of(visit)
        chosen = chosen_turns(look, evaluation)
        target = (folder or exported_folder(home.exports, evaluation.partition)).absolute()
        _check_ours(target)
        # Beside a folder that somebody has named there may be no file of ours that locks it.
        mark = f"-{os.getpid()}"
        return replace_folder(target, lambda new: _fill(new, target, visit, evaluation, chosen, progress), mark)


def _visit(bench: Bench, look: Any, suite: str, model_version: str, day: date | None) -> Visit:
    """Returns a visit as if the evaluation had been requested, but without server, address or token."""
    from starlette.datastructures import QueryParams

    query = QueryParams({"model_version": model_version, "eval_date": day.isoformat() if day else ""})
    scope = {"type": "http", "query_string": str(query).encode(), "path_params": {"suite": suite}, "headers": []}
    return Visit(bench, look, Request(scope), {})


def _check_ours(target: Path) -> None:
    """Only allows replacing an earlier export, so that a folder named by mistake is not lost."""
    if target.exists() and not (target / MARKER).is_file() and (not target.is_dir() or any(target.iterdir())):
        raise UsageError(f"{target} exists already and is not an export; name a new or empty folder")


def _fill(
    aside: Path, target: Path, visit: Visit, evaluation: StoredEvaluation, chosen: ExportedTurns, progress: Progress
) -> Exported:
    (aside / TURNS).mkdir()
    pages = [turn_page(row["turn_id"], row["sample"]) for row in chosen.rows]
    label, shortened, end = f"pages of {evaluation.partition.suite}", 0, 0
    for place, row in enumerate(counted(progress, label, chosen.rows, len(chosen.rows))):
        if place == end:
            end += narrow_to_next(visit.look, evaluation, chosen.rows[place:])
        seen = turn_seen(visit, evaluation, row["turn_id"], row["sample"])
        text, whole = _turn_page(seen, chosen, place, pages)
        (aside / pages[place]).write_text(text, encoding="utf-8")
        shortened += not whole
    (aside / DATA).write_text(data_script(chosen.rows), encoding="ascii")
    for name in (_STYLE, _SCRIPT):
        (aside / name).write_bytes(static_file(name))
    figures = visit.look.row(
        "SELECT mean, low, high FROM statistics WHERE suite = ? AND model_version = ? AND eval_date = ? "
        "AND metric = 'correct' AND split = 'all'",
        [*_key(evaluation.partition)],
    )
    found = evaluation.partition
    text = render(
        "exported/index.html.j2",
        layout="exported/base.html.j2",
        root="",
        title=f"{found.model_version} on {found.suite}",
        partition=found,
        figures=figures,
        chosen=chosen.text,
        searched=MOST_SEARCHED,
        simulated=bool(chosen.rows) and model_version_of(visit.look, found.model_version).get("simulated"),
        size=_size(aside),
    )
    (aside / INDEX).write_text(text, encoding="utf-8")
    (aside / MARKER).write_text(f"{found}, {datetime.now(UTC).isoformat()}\n")
    return Exported(target, found, chosen.text, _size(aside), shortened)


def _turn_page(seen: TurnSeen, chosen: ExportedTurns, place: int, pages: list[str]) -> tuple[str, bool]:
    """Returns the page of a turn by the workbench's template, and whether it has all of its sections.

    Its addresses lead to other files of the folder, or are omitted.
    """
    earlier, later = (f"../{pages[n]}" if 0 <= n < len(pages) else None for n in (place - 1, place + 1))
    around = Around(f"../{INDEX}", {}, place, len(chosen.rows), earlier, later)
    partition, parts, left_out = seen.evaluation.partition, sections_of(seen, exported=True), list[str]()
    for name in ("", *_LEFT_OUT_FIRST):
        left_out += [part.title for part, _ in parts if part.name == name]
        parts = [(part, values) for part, values in parts if part.name != name]
        text = render(
            "turn.html.j2",
            layout="exported/base.html.j2",
            root="../",
            title=f"{seen.turn_id} · {partition.model_version}",
            seen=seen,
            evaluation=seen.evaluation,
            partition=partition,
            parts=parts,
            around=around,
            review=None,
            left_out=left_out,
            address=lambda *_: "",
        )
        if len(text.encode()) <= MOST_PAGE:
            break
    return text, not left_out


def _key(partition: Partition) -> tuple[str, str, date]:
    return partition.suite, partition.model_version, partition.eval_date


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def link_report(workspace: Workspace, found: Exported, progress: Progress) -> Path | None:
    """Rewrites the report with the link and returns its page; None if there is no report or the folder is elsewhere.

    A folder elsewhere is meant to be passed on, so a link to it would soon be broken.
    """
    home, partition = workspace.home, found.partition
    folder = report_folder(home.reports, partition)
    suite = workspace.suites.get(partition.suite)
    if found.folder != exported_folder(home.exports, partition) or not folder.is_dir() or not (suite and suite.header):
        return None
    inputs = Inputs.of(workspace, partition, progress=progress)
    for stage in chain_of(inputs.track):
        if stage.name == "report":
            run_stage(stage, inputs)
    return folder / PAGE
