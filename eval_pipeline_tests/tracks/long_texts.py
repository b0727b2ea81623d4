"""Long texts that are dear to read for who looks back, or looks ahead, too often; run by `test_long_texts.py`.

python -m eval_pipeline_tests.tracks.long_texts reads them all and names each before it does.
"""

import resource
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

from eval_pipeline.tracks.base import ArtefactError
from eval_pipeline.tracks.texts.reasoning import apart
from eval_pipeline_plugins.sql_equivalence.schema.schema import SqlSchema
from eval_pipeline_plugins.sql_equivalence.syntax.text import identical
from eval_pipeline_plugins.tracks.finqa.responses.artefact import parse_plan
from eval_pipeline_plugins.tracks.pandas_code.responses.artefact import parse_code
from eval_pipeline_plugins.tracks.pandas_code.results.structure import differences as differences_of_code
from eval_pipeline_plugins.tracks.sdmx.responses.artefact import parse_selection
from eval_pipeline_plugins.tracks.sql.metrics.tables_read import table_accuracy
from eval_pipeline_plugins.tracks.sql.responses.artefact import parse_query
from eval_pipeline_plugins.tracks.sql.responses.structure import differences
from eval_pipeline_plugins.tracks.sql.validation.validator import validate

SCHEMA = SqlSchema.from_ddl("CREATE TABLE t (a INT, b VARCHAR)")
GOLD = "SELECT a FROM t WHERE a = 1"
_CODE_LENGTH, _RESPONSE_LENGTH = 50_000, 99_500
_CPU_S = 8
"""Many times what one text takes, which is less than a second; where the square was taken, it was 15 and more."""

SQL = {
    "brackets": "(",
    "subscripts": "SELECT a|[1]",
    "subscripts of fields": "SELECT a|.b[1]",
    "fields": "SELECT a|.a",
    "casts": "SELECT a|::INT",
    "limits of modulos": "SELECT 5 % 2 |LIMIT a ",
    "limits within limits": "SELECT 5 % 2 |LIMIT (a ",
    "unions": "SELECT 1| UNION SELECT 1",
    "alternatives": "SELECT a FROM t WHERE a = 1| OR a = 1",
    "sums": "SELECT 1| + 1",
    "subqueries": "|SELECT a FROM (",
    "joins that do not end": "SELECT a FROM t|JOIN (t ",
    "tables": "SELECT a FROM t|, t",
    "joins": "SELECT a FROM t| JOIN t USING (a)",
    "selects": "|SELECT ",
    "statements": "|SELECT 1;",
    "comments": "SELECT 1 |/*x*/",
    "comments within a comment": "SELECT 1 --|/* *",
    "quotes": "SELECT '|''",
    "backticks": "|`",
    "spaces": "SELECT 1| ",
    "names": "SELECT wait|_scan",
}
"""What stands before the bar once, and what follows it again and again."""
PARSED = {"joins", "comments"}
"""Of these, what sqlglot makes a tree of, which for tables is one of joins; others need not be read in further ways."""
PYTHON = {
    "signs": "result = |-",
    "attributes": "result = df|.a",
    "calls": "result = f|()",
    "comparisons": "result = 1| < 1",
    "branches": "if a: pass\n|elif a: pass\n",
    "blocks": "|if a:\n ",
    "names alone": "|a;",
    "decorators": "|@a\n",
    "loops": "|for a in b: pass\n",
    "growing frames": "|df = pd.concat([df, df])\n",
}
RESPONSES = {
    "backticks": "|`",
    "spaces": "x| ",
    "line breaks": "[x|\n",
    "brackets": "|[",
    "pairs": "|{} ",
    "objects that do not end": '|{"a": ',
    "fences": "|```json\n{\n```\n",
    "a text that does not end": "x" + "[" * 900 + '"|x',
    "digits": "x[0.|1",
    "keys": '|{"plan": [], ',
}
MARKS = {
    "marks in a fence": ("```", "<think>"),
    "fences and ends": ("", "``` </think> "),
    "marks after an answer": ("x", "</s>"),
    "marks before an answer": ("", "<answer>"),
    "channels that say nothing": ("", "<|channel|>a"),
    "messages": ("<|channel|>a", "<|message|>"),
}
"""Of reasoning and answers: once, and again and again."""


def long(pattern: str, length: int) -> str:
    """A text of a length."""
    once, _, again = pattern.rpartition("|")
    return once + again * ((length - len(once)) // len(again))


def readings() -> Iterator[tuple[str, Callable[[], object]]]:
    """What is read, and how."""
    for name, pattern in SQL.items():
        sql = long(pattern, _CODE_LENGTH)
        yield name, partial(validate, sql, SCHEMA)
        if name in PARSED:
            yield f"tables of {name}", partial(table_accuracy, sql, ["t"])
            yield f"differences to {name}", partial(differences, sql, GOLD, "duckdb")
            yield f"text of {name}", partial(identical, sql, GOLD)
    for name, pattern in PYTHON.items():
        yield f"code with {name}", partial(differences_of_code, long(pattern, _CODE_LENGTH), "result = df.head(3)")
    for name, pattern in RESPONSES.items():
        text = long(pattern, _RESPONSE_LENGTH)
        yield f"plan in {name}", partial(parse_plan, text, True)
        yield f"query in {name}", partial(parse_query, text, recorded=True)
        yield f"code in {name}", partial(parse_code, text, recorded=True)
        yield f"selection in {name}", partial(parse_selection, text)

    for name, (once, again) in MARKS.items():
        yield f"reasoning in {name}", partial(apart, once + again * (_RESPONSE_LENGTH // len(again)))


def main() -> None:
    for name, read in readings():
        print(name, flush=True)
        resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + _CPU_S, resource.RLIM_INFINITY))
        with suppress(ArtefactError):  # nobody expects an answer in them
            read()
    print("all read")


if __name__ == "__main__":
    main()
