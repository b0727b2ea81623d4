"""Accuracy of model versions under each contract, and whether their order depends on it; for tracks with contracts."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from eval_pipeline.core.model import Partition
from eval_pipeline.reports.queries import literal, newest_of, recorded_rows
from eval_pipeline.store.record import Record, RecordKey
from eval_pipeline.store.tables import ACCURACY_BY_CONTRACT

Row = dict[str, Any]
_MOST_PAIRS = 3


def contract_rows(record: Record, partitions: Sequence[Partition]) -> list[Row]:
    """Returns the rows of `accuracy_by_contract` of evaluations, ordered as `contracts_query` has them.

    There are none of those that have no such table.
    """
    found = by_model(recorded_rows(record, ACCURACY_BY_CONTRACT, map(RecordKey.of, partitions)).to_pylist())
    most_accurate_first = sorted(found.items(), key=lambda item: (-_mean(item[1].values()), item[0]))
    return [row for _, rows in most_accurate_first for row in rows.values()]


def contracts_query(suite: str) -> str:
    """Returns the query for the accuracies and ranks of a suite's model versions, the most accurate one first.

    Equal ones have the same rank.
    """
    return (
        "SELECT *, rank() OVER (PARTITION BY contract ORDER BY accuracy DESC) AS rank, "
        "avg(accuracy) OVER (PARTITION BY model_version) AS mean FROM "
        f"(SELECT *, row_number() OVER () AS place FROM accuracy_by_contract WHERE suite = {literal(suite)}) "
        f"JOIN {newest_of(suite)} USING (suite, model_version, eval_date) ORDER BY mean DESC, model_version, place"
    )


def by_model(rows: Sequence[Row]) -> dict[str, dict[str, Row]]:
    """Returns the rows by model version and contract, in their order."""
    found: dict[str, dict[str, Row]] = {}
    for row in rows:
        found.setdefault(row["model_version"], {})[row["contract"]] = row
    return found


def owed_text(row: Row) -> str:
    """Returns what right answers owe to a contract: `duplicates 12, extra columns 3`; empty for nothing."""
    found: Mapping[str, int] = json.loads(row["owed_to"])
    most = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{_words(name)} {count:,}" for name, count in most)


def order_sentence(rows: Sequence[Row]) -> str:
    """Returns who leads under which contracts, and on what the order of model versions depends.

    The figures are taken as they are, however small a difference. Where the order of two turns round, it depends on
    what all contracts overlook under which the one leads, and none of those under which the other does, if right
    answers are owed to that.

    Args:
        rows: rows of `accuracy_by_contract`, of evaluations of one suite, the most accurate model version first.

    Returns:
        One sentence without a full stop; empty for fewer than two model versions.
    """
    found = by_model(rows)
    if len(found) < 2:
        return ""
    pairs = [_Pair(first, second, found[first], found[second]) for first, second in combinations(found, 2)]
    turning = [pair for pair in pairs if pair.ahead and pair.behind]
    told = [*_leader(pairs, list(found)), *(pair.sentence() for pair in turning[:_MOST_PAIRS])]
    if len(turning) > _MOST_PAIRS:
        told.append(f"so does that of {len(turning) - _MOST_PAIRS} further pairs")
    return "; ".join(told)


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two model versions, with their rows by contract."""

    a: str
    b: str
    of_a: Mapping[str, Row]
    of_b: Mapping[str, Row]

    def _where(self, sign: int) -> list[str]:
        differences = {one: row["accuracy"] - self.of_b[one]["accuracy"] for one, row in self.of_a.items()
                       if one in self.of_b}  # fmt: skip
        return [one for one, difference in differences.items() if (difference > 0) - (difference < 0) == sign]

    @property
    def ahead(self) -> list[str]:
        """The contracts under which the first leads."""
        return self._where(1)

    @property
    def level(self) -> list[str]:
        """The contracts under which both are equally accurate."""
        return self._where(0)

    @property
    def behind(self) -> list[str]:
        """The contracts under which the second leads."""
        return self._where(-1)

    def sentence(self) -> str:
        """Returns on what their order depends."""
        causes = " and ".join(map(_words, self._causes())) or "the contract"
        where = f"{self.a} leads under {_listed(self.ahead)}, {self.b} under {_listed(self.behind)}"
        return f"the order of {self.a} and {self.b} depends on {causes} ({where})"

    def _causes(self) -> Iterator[str]:
        ahead, behind = ([self._overlooks(one) for one in names] for names in (self.ahead, self.behind))
        for lenient, strict in ((ahead, behind), (behind, ahead)):
            apart = frozenset.intersection(*lenient) - frozenset.union(*strict)
            yield from sorted(apart & self._owed())

    def _overlooks(self, contract: str) -> frozenset[str]:
        return frozenset(self.of_a[contract]["overlooks"].split(", "))

    def _owed(self) -> frozenset[str]:
        return frozenset(
            name for of in (self.of_a, self.of_b) for row in of.values() for name in json.loads(row["owed_to"])
        )


def _leader(pairs: Sequence[_Pair], names: Sequence[str]) -> Iterator[str]:
    """Yields who is behind nobody under any contract, if anybody is."""
    own = [pair for pair in pairs if pair.a == names[0]]  # nobody with a lower mean can lead everywhere
    if any(pair.behind for pair in own):
        return
    leaders = [names[0], *(pair.b for pair in own if not pair.ahead)]
    if len(leaders) == len(names):
        yield f"{_listed(names)} are level under every contract"
        return
    leads = f"{_listed(leaders)} {'leads' if len(leaders) == 1 else 'lead'}"
    near = [pair for pair in own if pair.ahead and pair.level]
    level = list(dict.fromkeys(contract for pair in near for contract in pair.level))
    alone = [contract for contract in own[0].of_a if contract not in level]
    if len(level) > len(alone) > 0:
        yield f"{leads} under {_listed(alone)}, behind nobody elsewhere"
    elif near:
        others = f"{_listed([pair.b for pair in near])} {'is' if len(near) == 1 else 'are'}"
        yield f"{leads} under every contract but {_listed(level)}, where {others} level"
    else:
        yield f"{leads} under every contract"


def _mean(rows: Collection[Row]) -> float:
    mean: float = sum(row["accuracy"] for row in rows) / len(rows)
    return mean


def _words(name: str) -> str:
    return name.replace("_", " ")


def _listed(names: Sequence[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last
