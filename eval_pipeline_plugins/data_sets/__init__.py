"""Importers of data sets that other projects made, each with its form here and an entry point in `pyproject.toml`."""

from typing import Any

from eval_pipeline.tracks.registry import ForeignForm


def _form(track: str, module: str, **further: Any) -> ForeignForm:
    return ForeignForm(track, f"{__name__}.{module}", **further)


CONVFINQA = _form("finqa", "convfinqa:read_convfinqa")
TEXT = _form("text", "text:read_rows", maps_columns=True)
STATGPT = _form(
    "sdmx",
    "sdmx.statgpt:read_statgpt",
    further="structures",
    further_help="SDMX structure message, or a CSV list of terms (may be given again).",
)

DABENCH = _form(
    "pandas",
    "pandas_code.dabench:read_dabench",
    further="files",
    further_help="File of labels, table, or folder of such (may be given again).",
)
PANDASEVAL = _form("pandas", "pandas_code.pandaseval:read_pandaseval", leaves_out_wrong_gold=True)
"""Also the form of `numpyeval`, which is of the same project."""
DACODE = _form(
    "pandas",
    "pandas_code.dacode:read_dacode",
    further="files",
    further_help="Folder with `source`, `gold` and `eval.jsonl` (may be given again).",
    leaves_out_wrong_gold=True,
)
DACODE_TASKS = _form(
    "agent",
    "agent_tasks.dacode:read_dacode_tasks",
    further="files",
    further_help="Folder with `source`, `gold` and `eval.jsonl` (may be given again).",
    leaves_out_wrong_gold=True,
)
ADE_BENCH = _form(
    "agent",
    "agent_tasks.ade_bench:read_ade_bench",
    further="shared",
    further_help="Folder with `projects/dbt` and `databases/duckdb`, as ADE-bench has it (may be given again).",
    leaves_out_wrong_gold=True,
)
BIRD_INTERACT = _form(
    "agent",
    "agent_tasks.bird_interact:read_bird_interact",
    further="databases",
    further_help="SQLite database, folder of PostgreSQL's scripts, knowledge, file of solutions (may be given again).",
    leaves_out_wrong_gold=True,
)
DATA_AGENT_BENCH = _form(
    "agent",
    "agent_tasks.data_agent_bench:read_data_agent_bench",
    further="databases",
    further_help="Folder with the files that db_config.yaml names (may be given again).",
    leaves_out_wrong_gold=True,
)
DABSTEP = _form(
    "agent",
    "agent_tasks.dabstep:read_dabstep",
    further="files",
    further_help="Folder `context` with the tables and the manual (may be given again).",
    leaves_out_wrong_gold=True,
)
BIGCODEBENCH = _form("pandas", "pandas_code.bigcodebench:read_bigcodebench", leaves_out_wrong_gold=True)
DS1000 = _form("pandas", "pandas_code.ds1000:read_ds1000", leaves_out_wrong_gold=True)

SPIDER, BIRD, DEFOG, QUERYCRAFT, KAGGLEDBQA, LIVESQLBENCH = (
    _form(
        "sql",
        f"sql.{form}:read_{form}",
        further="databases",
        further_help="SQLite database, or folder of such; schemas and descriptions that the form knows "
        "(may be given again).",
    )
    for form in ("spider", "bird", "defog", "querycraft", "kaggledbqa", "livesqlbench")
)
