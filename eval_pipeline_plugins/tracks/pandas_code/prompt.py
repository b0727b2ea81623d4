"""The parts of a prompt: instructions, tables, earlier questions with their results, and the question."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from eval_pipeline.core.model import Message
from eval_pipeline.tracks.texts.prompt_parts import EXAMPLES, PromptParts
from eval_pipeline_plugins.tracks.pandas_code.cases.dialect import is_polars
from eval_pipeline_plugins.tracks.pandas_code.cases.outputs import output_request

if TYPE_CHECKING:
    from eval_pipeline_plugins.tracks.pandas_code.cases.case_file import PandasCase, PandasContext, PandasTurn
    from eval_pipeline_plugins.tracks.pandas_code.cases.source import SuiteTable


_TASK = """\
You answer questions about tables by writing Python with pandas. The tables are there as DataFrames under their names; \
where there is only one, it is also called df. pandas is imported as pd, numpy as np. Nothing else can be read: no \
files, no network.

Set the variable `result` to the answer: a value, a Series or a DataFrame, with just what the question asks for. \
Groups belong in columns, or in the index of a Series. Keep the names of the tables' columns.

Answer with one block of Python code and nothing else:
```python
result = df["amount"].sum()
```"""
_KEEP_NAMES = "Keep the names of the tables' columns."
_NAMES = """\
Keep the names of the tables' columns where they are the answer, and those that the question gives; \
other names are yours to choose."""
_TESTED = """\
You complete Python programs that use pandas and numpy. Answer with one block of Python code and nothing else: the \
whole program, with the part that was given. It is checked by tests that follow it."""
_PART = """\
You complete Python programs that use pandas, numpy and matplotlib. Answer with one block of Python code and nothing \
else: only the code that is missing, which is put in its place in the program. It is checked by running the program."""

_POLARS = """\
You answer questions about tables by writing Python with polars. The tables are there as polars DataFrames under their \
names; where there is only one, it is also called df. polars is imported as pl. Nothing else can be read: no files, no \
network.

Set the variable `result` to the answer: a value, a Series or a DataFrame, with just what the question asks for. \
Groups belong in columns. Keep the names of the tables' columns.

Answer with one block of Python code and nothing else:
```python
result = df["amount"].sum()
```"""

_NO_TABLES = "There are no tables."


_TEMPLATE = (
    Message("system", "{{ system }}"),
    Message("user", "{{ tables }}"),
    EXAMPLES,
    Message("user", "{{ history }}\n\n{{ question }}\n\n{{ output }}"),
)


def prompt_parts(case: "PandasCase", turn: "PandasTurn", history: Sequence[str], version: str) -> PromptParts:
    """Returns the parts of a turn's prompt. Instructions and tables are the same for every turn of the case.

    Raises:
        KeyError: the version is not in `prompt_versions`.
    """
    context = case.context
    tested = _TESTED if context.template is None else _PART
    task = _POLARS if is_polars(context) else _TASK
    first = task if context.sets_result else tested
    earlier = zip(case.turns[: turn.index], history, strict=True)
    wanted = [] if context.output is None else [output_request(context.output)]
    if turn.gold.columns and version != "code-1":
        wanted.append(f"The columns of the result are called {', '.join(turn.gold.columns)}.")
    texts = {
        "system": {"code-1": first, "code-2": _told_more(first, context)}[version],
        "tables": tables_text(context.tables) if context.sets_result else "",
        "history": "\n\n".join(
            f"Earlier question: {before.question}\nIts result:\n{answer}" for before, answer in earlier
        ),
        "question": turn.question,
        "output": "\n\n".join(wanted),
    }
    return PromptParts(_TEMPLATE, texts, shared=frozenset({"system", "tables"}))


def _told_more(task: str, context: "PandasContext") -> str:
    from eval_pipeline_plugins.tracks.pandas_code.running.runner import versions

    told = task.replace(_KEEP_NAMES, _NAMES)
    if is_polars(context):
        return told
    with_versions = " and ".join(f"{name} {number}" for name, number in versions(context.layer).items())
    return f"{told}\n\nThe code runs with {with_versions}."


def tables_text(tables: "Sequence[SuiteTable]") -> str:
    """Describes the tables for a model.

    There is one line per column, with its dtype, examples, and how many values are missing.
    """
    return "\n\n".join("\n".join(_table_lines(table)) for table in tables) or _NO_TABLES


def _table_lines(table: "SuiteTable") -> Iterator[str]:
    yield f"{table.name}: {table.rows:,} rows"
    for column in table.columns:
        told = f"- {column.name} ({column.dtype})"
        if column.examples:
            told += f": e.g. {', '.join(column.examples)}"
        missing = column.missing / table.rows if table.rows else 0.0
        yield told + (f"; {missing:.0%} missing" if missing >= 0.01 else "; some missing" if missing else "")
