"""The suite's file format of a case (docs/pandas.md), and its conversion to the data model."""

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from eval_pipeline.core.ids import turn_id
from eval_pipeline.core.model import Case, Json, Turn
from eval_pipeline.sandbox.layers import Layer
from eval_pipeline.table_comparison.contracts import Contract, WrittenContract, insisted_by
from eval_pipeline.table_comparison.relaxations import Relaxation, Set
from eval_pipeline.tracks.base import CaseError
from eval_pipeline.tracks.options import checked_form
from eval_pipeline_plugins.tracks.pandas_code.analysis.row_keeping import keeps_rows
from eval_pipeline_plugins.tracks.pandas_code.analysis.syntax import parse
from eval_pipeline_plugins.tracks.pandas_code.cases.dialect import POLARS
from eval_pipeline_plugins.tracks.pandas_code.cases.outputs import FIGURE, output_problem
from eval_pipeline_plugins.tracks.pandas_code.cases.source import PandasOptions, PandasShared, SuiteTable
from eval_pipeline_plugins.tracks.pandas_code.cases.stored import stored_result
from eval_pipeline_plugins.tracks.pandas_code.cases.template import template_problem
from eval_pipeline_plugins.tracks.pandas_code.question.names import names_in, names_of_result, spoken_of
from eval_pipeline_plugins.tracks.pandas_code.question.question import read_question
from eval_pipeline_plugins.tracks.pandas_code.results.forms import Form

_FORMAT = ConfigDict(extra="forbid", frozen=True)
_Text = Annotated[str, Field(min_length=1)]


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


_Columns: TypeAlias = Annotated[tuple[_Text, ...], BeforeValidator(_as_list), Field(min_length=1)]


def _as_texts(value: Any) -> Any:
    """Requires answers to be texts, because YAML does not keep the notation of bare numbers, which matters here."""
    if isinstance(value, dict) and any(not isinstance(label, str) for label in value.values()):
        raise ValueError('expected texts by name, as in {mean_fare: "34.65"}')
    return value


class PandasTurnFile(BaseModel):
    """One question and the definition of a right answer.

    Attributes:
        code: reference code, which sets `result`; performance is compared with it.
        expected: the result, if it does not come from the reference code: a value, a list, or a table as a mapping of
            columns to lists.
        answers: closed answers by name, scored by DABench's rule.
        tests: code that is appended to the answer's code and raises if that is wrong; `result` need not be set then.
        template: a program with a line `[insert]` in whose place the answer is put; `tests` run it (`template.py`).
        output: `figure`, or the name of a file that the code writes; its content is the result.
        ordered: whether the order of rows counts, or the columns that define the order (rows equal in them may be in
            any order). If left out, words of the question decide (sorted, ordered by, descending, ...).
        columns: names that columns of the result must have, which the prompt tells. If left out, those of which the
            question speaks as names (`` `total` ``, a column total, net_price).
    """

    model_config = _FORMAT

    question: _Text
    code: _Text | None = None
    expected: Any = None
    answers: Annotated[dict[str, str], BeforeValidator(_as_texts)] = Field(default_factory=dict)
    tests: _Text | None = None
    template: _Text | None = None
    output: _Text | None = None
    ordered: Annotated[bool | tuple[_Text, ...] | None, BeforeValidator(_as_list)] = None
    columns: Annotated[tuple[_Text, ...] | None, BeforeValidator(_as_list)] = None

    @model_validator(mode="after")
    def _says_what_is_right(self) -> "PandasTurnFile":
        told = [name for name in ("expected", "answers", "tests") if name in self.model_fields_set]
        if len(told) > 1:
            raise ValueError(f"expected one of 'expected', 'answers' and 'tests', found {' and '.join(told)}")
        if not told and self.code is None:
            raise ValueError("expected 'code', whose result is the right one, or 'expected', 'answers' or 'tests'")
        if self.tests is not None and self.code is None:
            raise ValueError("'tests' need 'code' that passes them")
        return self

    @model_validator(mode="after")
    def _says_what_code_is_for(self) -> "PandasTurnFile":
        if self.output is not None:
            if self.answers or self.tests is not None:
                raise ValueError("an 'output' is compared with that of 'code' or with 'expected', not by other means")
            if problem := output_problem(self.output):
                raise ValueError(f"'output' {problem}")
            if self.output == FIGURE and self.code is None:
                raise ValueError("a figure needs 'code' that draws the right one")
        if self.template is not None:
            if self.tests is None:
                raise ValueError("a 'template' needs 'tests' that run it")
            if problem := template_problem(self.template):
                raise ValueError(f"'template' {problem}")
        return self


class PandasCaseFile(BaseModel):
    """One conversation about some tables.

    Attributes:
        tables: names of the suite's tables; default: all.
        compare: in what answers may differ from the expected results, beyond what the suite says.
        unique: by table, columns whose values are all different, or lists of columns that are so together; variants of
            the tables keep this, as they do for what looks like a key in the given tables.
        may_be_empty: whether groups, results and tables may be empty although none is in the given tables, so that
            variants have such.
        features: facts to break results down by, e.g. `difficulty`.
    """

    model_config = _FORMAT

    id: _Text
    tables: Annotated[tuple[_Text, ...] | None, BeforeValidator(_as_list)] = None
    turns: Annotated[tuple[PandasTurnFile, ...], Field(min_length=1)]
    cluster: _Text | None = None
    compare: WrittenContract | None = None
    unique: dict[_Text, Annotated[tuple[_Columns, ...], BeforeValidator(_as_list)]] = Field(default_factory=dict)
    may_be_empty: bool = False
    tags: tuple[str, ...] = ()
    features: dict[str, bool | int | float | str] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PandasContext:
    """The setting of a case's questions.

    Attributes:
        sets_result: whether code has to set `result`; false if tests decide.
        template: the program of which answers are a part; None if they are whole programs.
        output: `figure`, or the name of the file that code writes; None if it sets `result`.
        layer: further packages that code may import.
        unique: tables with columns whose values are all different, alone or together.
        may_be_empty: whether groups, results and tables may be empty.
    """

    tables: tuple[SuiteTable, ...]
    sets_result: bool
    options: PandasOptions
    template: str | None = None
    output: str | None = None
    layer: Layer | None = None
    unique: tuple[tuple[str, tuple[tuple[str, ...], ...]], ...] = ()
    may_be_empty: bool = False

    @property
    def paths(self) -> dict[str, Path]:
        """The files of the tables by name, as the sandbox expects them."""
        return {table.name: table.path for table in self.tables}

    @property
    def columns(self) -> dict[str, tuple[str, ...]]:
        """The columns by table."""
        return {table.name: table.column_names for table in self.tables}


@dataclass(frozen=True, slots=True)
class PandasGold:
    """The definition of a right answer.

    Attributes:
        code: reference code, or None if the suite has none.
        stored: the expected result as tagged plain data; None if it comes from running the reference code.
        answers: closed answers by name; empty for none.
        tests: code that decides; None for none.
        ordered: whether the order of rows counts.
        order_keys: columns that define the order; empty if every row has a fixed place.
        calls: number of calls in the reference code, which measures its complexity; 0 without code.
        contract: in what a result may differ from the expected one.
        columns: names that the case gives; None if the question does.
    """

    code: str | None
    stored: Json = field(hash=False)
    answers: Mapping[str, str] = field(hash=False)
    tests: str | None
    ordered: bool
    order_keys: tuple[str, ...]
    calls: int
    question: str
    context: PandasContext = field(repr=False)
    contract: Contract = field(default_factory=Contract)
    columns: tuple[str, ...] | None = None

    @property
    def insisted(self) -> Set:
        """What the question insists on; code that repeats rows or is only near has gone wrong, whatever it says."""
        order = {Relaxation.ROW_ORDER} if self.ordered or self.by_row else set()
        return (
            insisted_by(self.question) - {Relaxation.ROW_ORDER} | {Relaxation.DUPLICATES, Relaxation.TOLERANCE} | order
        )

    @property
    def by_row(self) -> bool:
        """Whether the reference code gives one computed value for each row of a table, which has no other place."""
        return self.code is not None and keeps_rows(self.code, tuple(self.context.columns))

    @property
    def form(self) -> Form:
        """What is asked of the form of a result.

        A column of the tables that the question speaks of may be what is computed with, under whatever name; but the
        names of the result's columns may also be theirs.
        """
        return _form(self)


@lru_cache(maxsize=512)
def _form(gold: PandasGold) -> Form:
    known = tuple(dict.fromkeys(name for columns in gold.context.columns.values() for name in columns))
    names = gold.columns
    if names is None:
        given = names_of_result(gold.question)
        names = tuple(name for name in names_in(gold.question) if name in given or name not in known)
    of_one_year = len({*_YEAR.findall(gold.question)}) == 1
    return Form(
        names, known, spoken_of(gold.question, known), gold.contract.overlooked(gold.insisted), of_one_year, gold.by_row
    )


PandasTurn: TypeAlias = Turn[PandasGold]
PandasCase: TypeAlias = Case[PandasContext, PandasGold]


def read_case(raw: Mapping[str, Json], suite: str, file: str, line: int, shared: PandasShared) -> PandasCase:
    """Reads a case in the suite's file format.

    Raises:
        CaseError: a field is wrong (each is named), the suite has no such table, or the reference code does not parse.
    """
    parsed = checked_form(PandasCaseFile, raw)
    names = tuple(shared.tables) if parsed.tables is None else parsed.tables
    problems = [
        (("tables",), f"unknown table '{name}'; the suite has {', '.join(shared.tables) or 'none'}")
        for name in names
        if name not in shared.tables
    ]
    if problems:
        raise CaseError(problems)
    tables = tuple(shared.tables[name] for name in names)
    known = {table.name: table.column_names for table in tables}
    wrong = [
        (("unique", name), f"expected columns of a table of the case, found {', '.join(columns)}")
        for name, several in parsed.unique.items()
        for columns in several
        if not set(columns) <= set(known.get(name, ()))
    ]
    if wrong:
        raise CaseError(wrong)
    template = next((turn.template for turn in parsed.turns if turn.template is not None), None)
    output = next((turn.output for turn in parsed.turns if turn.output is not None), None)
    for name, told in (("a 'template'", template), ("an 'output'", output)):
        if told is not None and len(parsed.turns) > 1:
            raise CaseError([(("turns",), f"expected one turn, as it has {name}")])
    sets_result = not any(turn.tests for turn in parsed.turns)
    if shared.options.dialect == POLARS and not sets_result:
        raise CaseError(
            [(("turns",), f"expected no 'tests' in a suite of the dialect {POLARS}: they are for pandas code")]
        )
    unique = tuple(sorted(parsed.unique.items()))
    context = PandasContext(
        tables, sets_result, shared.options, template, output, shared.layer, unique, parsed.may_be_empty
    )
    contract = shared.options.compare.with_case(parsed.compare)
    golds = [_gold(turn, index, context, contract) for index, turn in enumerate(parsed.turns)]
    return Case(
        id=parsed.id,
        cluster=parsed.cluster or parsed.id,
        tags=parsed.tags,
        features=parsed.features | {"tables": ", ".join(names), "num_dialogue_turns": len(golds)},
        context=context,
        turns=tuple(
            Turn(turn_id(suite, parsed.id, index), index, gold.question, gold) for index, gold in enumerate(golds)
        ),
        source_file=file,
        source_line=line,
    )


def _gold(turn: PandasTurnFile, index: int, context: PandasContext, contract: Contract) -> PandasGold:
    calls = 0
    if turn.code is not None:
        tree = parse(turn.code)
        if tree is None:
            raise CaseError([(("turns", index, "code"), "is not Python")])
        calls = sum(isinstance(node, ast.Call) for node in ast.walk(tree))
    is_table = turn.output is None or not turn.output.lower().endswith(".json")
    stored = stored_result(turn.expected, is_table=is_table) if "expected" in turn.model_fields_set else None
    keys = turn.ordered if isinstance(turn.ordered, tuple) else ()
    ordered = read_question(turn.question, context.columns).ordered if turn.ordered is None else bool(turn.ordered)
    return PandasGold(
        turn.code,
        stored,
        turn.answers,
        turn.tests,
        ordered,
        keys,
        calls,
        turn.question,
        context,
        contract,
        turn.columns,
    )


_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
