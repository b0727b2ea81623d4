"""Signs in the answers of evaluations that point to a wrong configuration instead of a bad model."""

from collections.abc import Mapping, Sequence

from eval_pipeline.core.ids import parse_json
from eval_pipeline.core.model import Partition
from eval_pipeline.view.published import Look

_COLUMN = "implausible"


def implausible(look: Look, suite: str) -> Mapping[Partition, Sequence[str]]:
    """Returns the signs found in each evaluation of a suite, from `coverage`; evaluations without any are left out."""

    def read() -> dict[Partition, Sequence[str]]:
        if _COLUMN not in look.columns("coverage"):  # the store was made by an older version
            return {}
        rows = look.rows(
            "SELECT model_version, eval_date, implausible FROM coverage WHERE suite = ? AND implausible IS NOT NULL",
            [suite],
        )
        return {Partition(suite, row["model_version"], row["eval_date"]): parse_json(row[_COLUMN]) for row in rows}

    return look.remembered(("implausible", suite), read)
