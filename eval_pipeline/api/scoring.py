"""`ep.score`: scores answers made elsewhere against a suite's gold, in a temporary home."""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, cast

import yaml

from eval_pipeline.api.homes import Folder, at_home, outside_event_loops
from eval_pipeline.chain.evaluation import chain_of, evaluating, ingesting
from eval_pipeline.chain.runner import run_chain
from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.home import Home, find_home
from eval_pipeline.core.model import Partition
from eval_pipeline.core.system.days import today
from eval_pipeline.operations.project import samples
from eval_pipeline.operations.recorded.importing import import_predictions
from eval_pipeline.store.schemas import Table
from eval_pipeline.suites.headers import SUITE_FILE
from eval_pipeline.workspace.asked.scope import Scope
from eval_pipeline.workspace.homes.places import place_of
from eval_pipeline.workspace.inputs import Inputs
from eval_pipeline.workspace.workspace import Workspace

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Row = Mapping[str, Any]
Cases = Sequence[Row]
VERSION = "answers"
GIVEN = "given_cases"
"""Name of the suite that cases without one are put into."""


@dataclass(frozen=True)
class Scores:
    """The scores of answers, per turn and overall.

    Attributes:
        tables: Arrow tables by name: `turn_results`, `metrics`, `statistics`, and the track's own tables.
    """

    tables: Mapping[str, "pa.Table"]

    def to_pandas(self, table: str = "turn_results") -> "pd.DataFrame":
        """Returns one of the tables as a DataFrame. Raises UsageError for an unknown name."""
        if table not in self.tables:
            raise UsageError(f"the scores have no table '{table}'; they have {', '.join(self.tables)}")
        return cast("pd.DataFrame", self.tables[table].to_pandas(date_as_object=False))

    @property
    def accuracy(self) -> float | None:
        """The share of right turns; None if no turn was scored."""
        mean: float | None = self._overall()["mean"]
        return mean

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95% interval of the accuracy, clustered by conversation; None if it cannot be computed."""
        row = self._overall()
        return None if row["low"] is None else (row["low"], row["high"])

    def _overall(self) -> Row:
        rows: list[Row] = self.tables["statistics"].to_pylist()
        return next(row for row in rows if row["split"] == "all" and row["metric"] == "correct")


def score(
    suite: str | Path | Cases,
    answers: "Mapping[str, Any] | Iterable[Row] | pd.DataFrame",
    *,
    track: str | None,
    data: Folder | None,
) -> Scores:
    """See `eval_pipeline.score`."""

    def work() -> Scores:
        with TemporaryDirectory(prefix="eval-pipeline-") as name:
            return _score(Path(name), suite, _rows(answers), track, data)

    return outside_event_loops(work)


def _score(
    folder: Path, suite: str | Path | Cases, rows: Sequence[Row], track: str | None, data: Folder | None
) -> Scores:
    if not rows:
        raise UsageError("no answers were given")
    name = _put_suite(folder / "data" / "suites", suite, track, data)
    given = folder / "answers.jsonl"
    given.write_text("".join(json.dumps(row, default=str) + "\n" for row in rows), "utf-8")
    home: AbstractContextManager[Home] = at_home(folder / "home", folder / "data")
    with home as place:
        import_predictions(Workspace(place), given, name, VERSION, unreadable_fine=True)
        workspace = Workspace(place)
        inputs = Inputs.of(workspace, Partition(name, VERSION, today()), scope=Scope())
        # Cases without an answer are not scored.
        (path,) = place.predictions.rglob(f"{name}.jsonl")
        lines = path.read_text("utf-8").splitlines()
        answered = tuple(dict.fromkeys(json.loads(line)["case_id"] for line in lines))
        inputs = inputs.anew(scope=Scope(cases=answered))
        chain = chain_of(inputs.track)
        run_chain([stage for stage in (*ingesting(chain), *evaluating(chain)) if stage.writes], inputs)
        written = {table for stage in evaluating(chain) for table in stage.writes if table.key == "partition"}
        return Scores({table.name: inputs.read(table) for table in sorted(written, key=_name) if inputs.header(table)})


def _name(table: Table) -> str:
    return table.name


def _put_suite(suites: Path, suite: str | Path | Cases, track: str | None, data: Folder | None) -> str:
    """Puts the suite into a folder of suites; returns its name."""
    suites.mkdir(parents=True)
    if isinstance(suite, str | Path):
        found = _found(suite, data)
        (suites / found.name).symlink_to(found.resolve(), target_is_directory=True)
        return found.name
    if track is None:
        raise UsageError("cases without a suite need the name of their track: track='finqa'")
    folder = suites / GIVEN
    folder.mkdir()
    header = {"name": GIVEN, "version": "1", "track": track, "cases": "cases.yaml"}
    for file, content in ((SUITE_FILE, header), ("cases.yaml", [dict(case) for case in suite])):
        (folder / file).write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True), "utf-8")
    return GIVEN


def _found(suite: str | Path, data: Folder | None) -> Path:
    """Returns the folder of a suite: a path, or a name in `data`, in the home, or among the samples."""
    path = Path(suite).expanduser()
    if (path / SUITE_FILE).is_file():
        return path
    home = find_home()
    own = Path(data).expanduser() / "suites" if data is not None else home.data / "suites"
    place_of(home).imported().refresh()
    places = [own, home.imported_suites, samples() / "suites"]
    for place in places if isinstance(suite, str) else ():
        if (place / suite / SUITE_FILE).is_file():
            return place / suite
    looked = " or ".join(map(str, places)) if isinstance(suite, str) else path
    raise UsageError(f"there is no suite '{suite}' in {looked}")


def _rows(answers: "Mapping[str, Any] | Iterable[Row] | pd.DataFrame") -> list[Row]:
    """Returns the answers as rows of `import predictions`."""
    if hasattr(answers, "to_dict"):  # a DataFrame: what is missing in it is no field
        records = answers.to_dict("records")
        return [{str(name): value for name, value in row.items() if not _is_missing(value)} for row in records]
    if not isinstance(answers, Mapping):
        return list(answers)
    return [
        {"turn_id" if "#" in name else "case_id": name}
        | ({} if "#" in name else {"turn_index": 0})
        | (dict(said) if isinstance(said, Mapping) else {"response": said})
        for name, said in answers.items()
    ]


def _is_missing(value: Any) -> bool:
    import pandas as pd

    return pd.api.types.is_scalar(value) and bool(pd.isna(value))
