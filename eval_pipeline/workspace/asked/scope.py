"""The scope of a run: which part of a suite it covers."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from random import Random
from typing import Any, Self

from eval_pipeline.core.errors import InputError, UsageError
from eval_pipeline.core.ids import canonical_json
from eval_pipeline.core.model import Case, Partition
from eval_pipeline.store.record import Record, RecordKey
from eval_pipeline.store.tables import GENERATIONS, TURN_RESULTS
from eval_pipeline.workspace.workspace import Workspace

FULL = "full"
EXAMPLE = '{"sample_size": 5}'


def _is_count(value: Any) -> bool:
    return type(value) is int


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


CONDITIONS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "sample_size": ("a whole number", _is_count),
    "seed": ("a whole number", _is_count),
    "cases": ("a list of texts", _is_names),
    "tags": ("a list of texts", _is_names),
    "failed": ("true or false", lambda value: isinstance(value, bool)),
    "until": ("a text", lambda value: isinstance(value, str)),
    "batches": ("a whole number", _is_count),
}
"""Conditions in a scope label → the expected value in words, and a check of the value."""


@dataclass(frozen=True, slots=True)
class Scope:
    """A part of a suite. All given conditions must hold; conversations are always complete.

    Attributes:
        sample_size: number of conversations drawn at random, the same ones for the same seed.
        cases: ids of cases.
        tags: selects cases with any of them.
        failed: selects cases with a wrong turn in the latest full evaluation.
        until: the rule of a draw by known probabilities (`core.until`); its cases are in `sampling_design`.
        batches: number of batches of that draw to include.
    """

    sample_size: int | None = None
    seed: int = 0
    cases: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    failed: bool = False
    until: str = ""
    batches: int = 0

    def __post_init__(self) -> None:
        if self.sample_size is not None and self.sample_size < 1:
            raise UsageError(f"a sample needs at least one conversation, found sample_size {self.sample_size}")

    @property
    def is_full(self) -> bool:
        """Whether the scope is the whole suite."""
        return self == Scope(seed=self.seed)

    @property
    def is_drawn(self) -> bool:
        """Whether the cases were drawn with unequal probabilities, so that no plain mean over them means anything."""
        return bool(self.until)

    def label(self) -> str:
        """Returns the scope as written in the table `runs`: `full`, or its conditions as JSON."""
        if self.is_full:
            return FULL
        values = {name: value for name, value in asdict(self).items() if value}
        return canonical_json(values)

    @classmethod
    def from_label(cls, label: str) -> Self:
        """Parses a label. Raises UsageError if it is invalid, since people write labels as run tags."""
        if label == FULL:
            return cls()
        values: Any
        try:
            values = json.loads(label)
        except ValueError:
            values = None
        if not isinstance(values, dict):
            raise UsageError(f"'{label}' is not a scope; expected '{FULL}' or conditions as JSON, e.g. {EXAMPLE}")
        for name, value in values.items():
            if name not in CONDITIONS:
                raise UsageError(f"a scope has no condition '{name}'; conditions: {', '.join(CONDITIONS)}")
            expected, holds = CONDITIONS[name]
            if not holds(value):
                raise UsageError(f"the scope's {name} is {canonical_json(value)}; expected {expected}")
        lists = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
        return cls(**(values | lists))

    def select(self, cases: Sequence[Case], failed: Collection[str] | None = None) -> list[Case]:
        """Returns the cases in scope, in the suite's order.

        Args:
            cases: all cases of the suite.
            failed: ids of the cases with a wrong turn; None if the suite was never evaluated.

        Raises:
            UsageError: the suite lacks a case or tag, or `failed` is given without an earlier evaluation.
        """
        self.check_names(cases)
        if self.failed and failed is None:
            raise UsageError(
                "--failed needs an earlier evaluation of this suite and model version; run it in full first"
            )
        chosen = [
            case
            for case in cases
            if (not self.cases or case.id in self.cases)
            and (not self.tags or set(self.tags) & set(case.tags))
            and (not self.failed or case.id in (failed or ()))
        ]
        if self.sample_size is None or self.sample_size >= len(chosen):
            return chosen
        drawn = set(Random(self.seed).sample([case.id for case in chosen], self.sample_size))
        return [case for case in chosen if case.id in drawn]

    def check_names(self, cases: Sequence[Case]) -> None:
        """Raises UsageError if the scope names a case or tag that the cases lack."""
        unknown_cases = set(self.cases) - {case.id for case in cases}
        if unknown_cases:
            raise UsageError(f"no case '{min(unknown_cases)}' in this suite")
        unknown_tags = set(self.tags) - {tag for case in cases for tag in case.tags}
        if unknown_tags:
            tags = ", ".join(sorted({tag for case in cases for tag in case.tags}))
            raise UsageError(f"no case has the tag '{min(unknown_tags)}'; tags: {tags or 'none'}")


def failed_cases(record: Record, partition: Partition) -> set[str] | None:
    """Returns the cases with a wrong turn in the newest full evaluation of a suite and model version.

    None without one.
    """
    full = [
        key
        for key in record.partitions(TURN_RESULTS, RecordKey(partition.suite, partition.model_version))
        if (header := record.header(GENERATIONS, key)) is not None and header.made_from.get("scope") == FULL
    ]
    if not full:
        return None
    newest = max(full, key=lambda key: str(key.eval_date))
    table = record.read(TURN_RESULTS, newest, ["case_id", "correct"])
    pairs = zip(table["case_id"].to_pylist(), table["correct"].to_pylist(), strict=True)
    return {case for case, correct in pairs if correct is False}


def suites_in_scope(workspace: Workspace, suites: Sequence[str], scope: Scope) -> list[str]:
    """Returns the suites that have any of the scope's cases and tags.

    Raises:
        UsageError: no suite has.
    """
    if not scope.cases and not scope.tags:
        return list(suites)
    from eval_pipeline.suites.cases import read_cases

    chosen, refused = [], ""
    for name in suites:
        try:
            scope.check_names(read_cases(workspace.suite(name)))
            chosen.append(name)
        except InputError:
            chosen.append(name)  # the run reports the problem and continues with the other suites
        except UsageError as error:
            refused = f"{name}: {error}"
    if not chosen:
        raise UsageError(refused)
    return chosen
