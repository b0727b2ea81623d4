"""The draw of an evaluation by known probabilities: the table `sampling_design`, written batch by batch.

It contains everything that the draw is based on, including earlier outcomes, so that an interrupted run continues with
the same cases even if the history has changed since.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from eval_pipeline.core.covering.until import Until
from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.ids import json_text
from eval_pipeline.core.model import Partition
from eval_pipeline.store.record import Record, RecordKey
from eval_pipeline.store.tables import SAMPLING_DESIGN
from eval_pipeline.workspace.asked.scope import Scope

RIGHT, WRONG, UNKNOWN = "1", "0", "-"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A case that may be drawn.

    Attributes:
        turns: ids of its turns that count.
        history: for each turn, a character for each earlier evaluation: right, wrong or unknown.
    """

    case_id: str
    turns: tuple[str, ...]
    history: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DrawnBatch:
    """A batch: positions of the drawn candidates, ascending, and their probabilities."""

    places: tuple[int, ...]
    probabilities: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Design:
    """How the cases of an evaluation are drawn.

    Attributes:
        schedule: total number of cases asked at each look, ascending; empty if the sizes of batches depend on the cost
            of answers.
        evaluations: `<model version> <date>` of the earlier evaluations, in the order of the histories' characters.
        baseline: position of the baseline in `evaluations`; None without a baseline.
        candidates: all cases that may be drawn, in the suite's order.
        batches: what was drawn.
        ended: why no more is asked, of a ranking, which goes by several evaluations; empty while more may be.
        method: edition of the settings that it is drawn with.
    """

    until: Until
    seed: int
    schedule: tuple[int, ...]
    evaluations: tuple[str, ...]
    baseline: int | None
    candidates: tuple[Candidate, ...]
    batches: tuple[DrawnBatch, ...] = ()
    ended: str = ""
    method: int = 2

    @property
    def asked(self) -> int:
        """Number of cases drawn."""
        return sum(len(batch.places) for batch in self.batches)

    @property
    def left(self) -> int:
        """Number of cases not drawn."""
        return len(self.candidates) - self.asked

    @property
    def turns(self) -> int:
        """Number of turns of the suite that count."""
        return sum(len(candidate.turns) for candidate in self.candidates)

    @property
    def looks(self) -> int:
        """Number of looks whose intervals hold together.

        The share of the whole suite is known exactly once every case is asked, so that is no look. A comparison, which
        takes the suite for a sample, may still err then.
        """
        exact = self.baseline is None and bool(self.schedule) and self.schedule[-1] == len(self.candidates)
        return max(1, len(self.schedule) - exact)

    def scope(self) -> Scope:
        """Returns the scope of all batches so far; the whole suite once every case is drawn."""
        return Scope(until=self.until.label(), batches=len(self.batches)) if self.left else Scope()

    def with_batch(self, batch: DrawnBatch) -> "Design":
        """Returns the design with one more batch."""
        return replace(self, batches=(*self.batches, batch))

    def first(self, batches: int) -> "Design":
        """Returns the design with only its first batches."""
        return replace(self, batches=self.batches[:batches])


def write_design(record: Record, partition: Partition, design: Design) -> None:
    """Writes the table `sampling_design` of an evaluation."""
    batch_of, chance_of = dict[int, int](), dict[int, float]()
    for number, batch in enumerate(design.batches, start=1):
        for place, probability in zip(batch.places, batch.probabilities, strict=True):
            batch_of[place], chance_of[place] = number, probability
    places = range(len(design.candidates))
    columns: dict[str, list[Any]] = {
        "case_id": [candidate.case_id for candidate in design.candidates],
        "place": list(places),
        "turns": [json_text(candidate.turns) for candidate in design.candidates],
        "batch": [batch_of.get(place) for place in places],
        "probability": [chance_of.get(place) for place in places],
        "history": [json_text(candidate.history) for candidate in design.candidates],
    }
    told = {
        "until": design.until.label(),
        "seed": str(design.seed),
        "schedule": json_text(design.schedule),
        "evaluations": json_text(design.evaluations),
        "baseline": json_text(design.baseline),
        "ended": design.ended,
        "method": str(design.method),
    }
    with record.writer(SAMPLING_DESIGN, RecordKey.of(partition), told) as writer:
        writer.write(columns)


def read_design(record: Record, partition: Partition) -> Design | None:
    """Returns the design of an evaluation; None if its cases were never drawn. Raises StoreError if it is damaged."""
    key = RecordKey.of(partition)
    header = record.header(SAMPLING_DESIGN, key)
    if header is None:
        return None
    told: Mapping[str, str] = header.made_from
    rows = sorted(record.read(SAMPLING_DESIGN, key).to_pylist(), key=lambda row: row["place"])
    batches: dict[int, list[tuple[int, float]]] = {}
    for row in rows:
        if row["batch"] is not None:
            batches.setdefault(row["batch"], []).append((row["place"], row["probability"]))
    return Design(
        Until.parse(told["until"]),
        int(told["seed"]),
        tuple(json.loads(told["schedule"])),
        tuple(json.loads(told["evaluations"])),
        json.loads(told["baseline"]),
        tuple(
            Candidate(row["case_id"], tuple(json.loads(row["turns"])), tuple(json.loads(row["history"])))
            for row in rows
        ),
        tuple(
            DrawnBatch(tuple(place for place, _ in batches[number]), tuple(chance for _, chance in batches[number]))
            for number in sorted(batches)
        ),
        told.get("ended", ""),
        int(told.get("method", "1")),
    )


def design_of(record: Record, partition: Partition, scope: Scope) -> Design:
    """Returns the design of a drawn scope, with the scope's batches only.

    Raises:
        UsageError: there is no design, or it has fewer batches or another rule.
    """
    design = read_design(record, partition)
    if design is None or design.until.label() != scope.until or not 0 < scope.batches <= len(design.batches):
        raise UsageError(
            f"{partition.suite} has no draw '{scope.until}' of {scope.batches} batches for {partition.model_version} "
            f"on {partition.eval_date}; `eval-pipeline run --until '{scope.until}'` makes one"
        )
    return design.first(scope.batches)


def drawn_cases(record: Record, partition: Partition, scope: Scope) -> set[str]:
    """Returns the ids of the cases in a drawn scope. Raises as `design_of`."""
    design = design_of(record, partition, scope)
    return {design.candidates[place].case_id for batch in design.batches for place in batch.places}
