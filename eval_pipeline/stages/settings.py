"""What decides the results of stages in addition to the tables that they read and their code."""

from eval_pipeline.core.model import Suite
from eval_pipeline.store.tables import SUITE_EDITIONS
from eval_pipeline.suites.headers import load_suite
from eval_pipeline.workspace.inputs import Inputs

JUDGE_PROMPT = "judge_prompt"
"""The setting whose change would require asking the judge again."""


def gold_settings(inputs: Inputs) -> dict[str, str]:
    """Returns the edition of the gold used for scoring, so that evaluations with different golds are not compared."""
    row = inputs.read(SUITE_EDITIONS, ["gold_hash", "overrides_hash"]).to_pylist()[0]
    return {"gold": row["gold_hash"], "overrides": row["overrides_hash"] or ""}


def files_of(inputs: Inputs) -> dict[str, str]:
    """Returns the hash of all the suite's files, which decides both stages."""
    return {"files": loaded(inputs).content_hash}


def loaded(inputs: Inputs) -> Suite:
    """Returns the suite's header with the hash of its files."""
    return inputs.hold("suite", lambda: load_suite(inputs.workspace.suite(inputs.suite)))
