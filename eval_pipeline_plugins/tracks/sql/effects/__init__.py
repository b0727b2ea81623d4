"""Tasks that change data: scripts, the states that they leave, and how these are compared (docs/sql.md).

Most suites have none, so what other rooms ask for is named here and loaded when it is called.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from eval_pipeline.core.installed.plugins import Later

if TYPE_CHECKING:
    from eval_pipeline.core.model import Failed, Json, Outcome
    from eval_pipeline.sandbox.sql.effects.postgres_copy import ServerCopy
    from eval_pipeline.sandbox.sql.effects.state import Effects, Script
    from eval_pipeline_plugins.tracks.sql.cases.case_file import SqlGold
    from eval_pipeline_plugins.tracks.sql.cases.source import Database
    from eval_pipeline_plugins.tracks.sql.effects.judging import JudgedEffects
    from eval_pipeline_plugins.tracks.sql.validation.validator import Validation

statements_of: "Callable[[str, str], tuple[str, ...]]" = Later(
    "eval_pipeline_plugins.tracks.sql.effects.scripts:statements_of"
)
makes_code: "Callable[[str, str], bool]" = Later("eval_pipeline_plugins.tracks.sql.effects.scripts:makes_code")
copied: "Callable[[Database], Path | ServerCopy]" = Later("eval_pipeline_plugins.tracks.sql.effects.running:copied")
script_of: "Callable[[str, str, str, Database], Script]" = Later(
    "eval_pipeline_plugins.tracks.sql.effects.running:script_of"
)
validated_script: "Callable[[str, Database], Validation]" = Later(
    "eval_pipeline_plugins.tracks.sql.effects.running:validated_script"
)
outcome_of: "Callable[[str, Effects | Failed], Outcome]" = Later(
    "eval_pipeline_plugins.tracks.sql.effects.judging:outcome_of"
)
judge: "Callable[[SqlGold, str, Failed | None], JudgedEffects]" = Later(
    "eval_pipeline_plugins.tracks.sql.effects.judging:judge"
)
gold_problem: "Callable[[SqlGold], str | None]" = Later("eval_pipeline_plugins.tracks.sql.effects.judging:gold_problem")
gold_result: "Callable[[SqlGold], Json]" = Later("eval_pipeline_plugins.tracks.sql.effects.judging:gold_result")
gold_fingerprint: "Callable[[str, SqlGold], str | None]" = Later(
    "eval_pipeline_plugins.tracks.sql.effects.judging:gold_fingerprint"
)
