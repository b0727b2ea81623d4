"""What was observed about a pair of queries on the databases tried so far."""

from dataclasses import dataclass, field

from eval_pipeline.table_comparison.rows import same_rows
from eval_pipeline_plugins.sql_equivalence.results import ColumnMatch, Result
from eval_pipeline_plugins.sql_equivalence.search.evidence import MutationEvidence

_ENOUGH_RESULTS = 2
_MOST_LATE = 3


@dataclass
class PairTally:
    """The observations about a pair so far.

    Attributes:
        match: the orders of columns that fit all results of any engine.
        native: the same for the results of the deciding engine only.
        compared: databases on which both queries gave stable results.
        unstable: databases on which one of them gave unstable results.
        results: distinct results of the expected query, at most two; if there is only one, it may not depend on the
            data.
        mutation: the mutants that the databases distinguish; None if mutants were not tried.
        hunted: whether generated databases could be tried at all.
        unconfirmed: databases on which the results differ, but not on the server that has the data.
        confirmed: databases on which the server, too, gives the same results for both.
        runs: whether both queries have run in the deciding engine.
        late: databases on which a query was stopped because it took too long.
        error: the last error of either query.
    """

    match: ColumnMatch = field(default_factory=ColumnMatch)
    native: ColumnMatch = field(default_factory=ColumnMatch)
    compared: int = 0
    unstable: int = 0
    results: list[Result] = field(default_factory=list)
    mutation: MutationEvidence | None = None
    hunted: bool = False
    unconfirmed: int = 0
    confirmed: int = 0
    runs: bool = False
    late: int = 0
    error: str | None = None

    def agreed(self, expected: Result) -> None:
        """Records a result that both gave on a database."""
        self.compared += 1
        if len(self.results) < _ENOUGH_RESULTS and not any(same_rows(expected.rows, one.rows) for one in self.results):
            self.results.append(expected)

    @property
    def out_of_time(self) -> bool:
        """Whether the search was given up because of queries that take too long (recursive ones may never end)."""
        return self.late >= _MOST_LATE

    @property
    def vacuous(self) -> bool:
        """Whether the expected query returned the same everywhere: no rows, or an aggregate of no rows."""
        return len(self.results) < _ENOUGH_RESULTS
