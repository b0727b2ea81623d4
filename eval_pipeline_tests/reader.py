"""Somebody who reads the published store again and again while runs write."""

import threading
from pathlib import Path
from types import TracebackType
from typing import Self

import duckdb

TORN = """
WITH counted AS (
  SELECT suite, model_version, eval_date, count(*) AS results, count(*) FILTER (correct) AS correct
  FROM turn_results GROUP BY ALL),
headline AS (
  SELECT suite, model_version, eval_date, n, mean FROM statistics WHERE metric = 'correct' AND split = 'all'),
wide AS (SELECT suite, model_version, eval_date, count(*) AS turns FROM finqa_turns GROUP BY ALL),
cost AS (SELECT suite, model_version, eval_date, turns FROM cost_per_correct_answer)
SELECT suite, model_version, eval_date, 'tables disagree: ' || concat_ws(', ', results, n, wide.turns, cost.turns)
FROM counted FULL JOIN headline USING (suite, model_version, eval_date)
FULL JOIN wide USING (suite, model_version, eval_date) FULL JOIN cost USING (suite, model_version, eval_date)
WHERE results IS DISTINCT FROM n OR results IS DISTINCT FROM wide.turns OR results IS DISTINCT FROM cost.turns
   OR abs(mean - correct / results) > 1e-12
UNION ALL
SELECT suite, NULL, NULL, 'unfinished: ' || count(DISTINCT turn_id) || ' turns of ' || (SELECT count(*) FROM turns t
  WHERE t.suite = r.suite) FROM turn_results r GROUP BY suite, model_version, eval_date
  HAVING count(DISTINCT turn_id) <> (SELECT count(*) FROM turns t WHERE t.suite = r.suite)
"""
SEEN = "SELECT DISTINCT suite || '/' || model_version || '/' || eval_date FROM turn_results"


class Reader:
    """Opens the store again and again in a thread of its own, while the context lasts, and notes what it met.

    For finqa suites with one sample a turn that are evaluated in full.

    Attributes:
        looks: how often the store was read.
        wrong: errors, tables that disagree, evaluations that were there and are not any more.
        seen: every `suite/model version/date` that it has met.
    """

    def __init__(self, store: Path, every_s: float = 0.05) -> None:
        self.looks = 0
        self.wrong: list[str] = []
        self.seen: set[str] = set()
        self._store, self._every_s = store, every_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read, name="reader", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _read(self) -> None:
        ended = False
        while not ended:  # the last look is after the end
            ended = self._stop.wait(self._every_s)
            if self._store.exists():
                self._look()

    def _look(self) -> None:
        self.looks += 1
        try:
            with duckdb.connect(str(self._store), read_only=True) as connection:
                torn = connection.execute(TORN).fetchall()
                now = {row[0] for row in connection.execute(SEEN).fetchall()}
        except duckdb.Error as error:
            self.wrong.append(f"{type(error).__name__}: {error}")
            return
        self.wrong += [" ".join(map(str, row)) for row in torn]
        self.wrong += [f"gone: {name}" for name in sorted(self.seen - now)]
        self.seen |= now
