"""The `options` in a suite's `suite.yaml`, and what a case may set anew (docs/agent.md)."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from eval_pipeline.core.model import Json
from eval_pipeline.table_comparison.contracts import Contract, WrittenContract
from eval_pipeline.tracks.capabilities import ActLimits

STRICT = ConfigDict(extra="forbid", frozen=True)
Text = Annotated[str, Field(min_length=1)]
STATEMENTS = tuple(
    "ALTER ATTACH CALL COPY CREATE DELETE DETACH DROP EXPORT GRANT IMPORT INSERT INSTALL LOAD MERGE PRAGMA REVOKE SET "
    "TRUNCATE UPDATE VACUUM".split()
)
"""Kinds of statements that a case may forbid."""


class WrittenServer(BaseModel):
    """A server of tools (MCP over standard input and output), as users of its clients write it.

    Attributes:
        command: the program; it starts in the suite's folder `tools`.
        env: what it finds in its environment besides.
    """

    model_config = STRICT

    command: Text
    args: tuple[str, ...] = ()
    env: dict[Text, str] = Field(default_factory=dict)


class CaseLimits(BaseModel):
    """What an attempt may use; see `ActLimits`."""

    model_config = STRICT

    steps: int | None = Field(default=None, ge=1, le=1000)
    model_calls: int | None = Field(default=None, ge=1, le=1000)
    tokens: int | None = Field(default=None, ge=1)
    usd: float | None = Field(default=None, gt=0)
    seconds: float | None = Field(default=None, gt=0, le=7200)
    output_bytes: int | None = Field(default=None, ge=200, le=1_000_000)

    def over(self, other: ActLimits) -> ActLimits:
        """Returns other limits with those that are set here."""
        told: dict[str, Any] = {name: found for name, found in self if found is not None}
        return ActLimits(**{name: getattr(other, name) for name in type(self).model_fields} | told)


class AgentOptions(BaseModel):
    """The `options` of a suite of this track.

    Attributes:
        tools: tools of a world, and of servers, that may be called, default: all; `answer` can always be.
        mcp: servers of further tools by name.
        packages: file in the suite's folder that lists further packages for the worlds (`sandbox/layers.py`).
        guidelines: is part of the system message.
        compare: in what answers and tables may differ and still be the same, see `table_comparison.contracts`.
    """

    model_config = STRICT

    tools: tuple[Text, ...] | None = None
    mcp: dict[Text, WrittenServer] = Field(default_factory=dict)
    packages: str | None = Field(default=None, pattern=r"^[\w-][\w.-]*$")
    limits: CaseLimits = CaseLimits()
    guidelines: str = ""
    compare: WrittenContract = Contract()


class _Weighed(BaseModel):
    model_config = STRICT

    weight: float = Field(default=1.0, gt=0)


class AnswerCheck(_Weighed):
    """The answer is the gold's.

    Attributes:
        labels: the answers that are possible, if these are few: exactly one of them has to be given.
    """

    compare: WrittenContract | None = None
    labels: tuple[Text, ...] = ()


class StateCheck(_Weighed):
    """What the gold changed is changed in the same way, and nothing else that was there is.

    Attributes:
        new_files: whether there may be files beside those that the gold made.
        written: patterns of files of which one has to be written or changed, whatever is in it.
        free: what may be anything, as patterns: files (`models/*`), columns of files (`left.csv.note`), tables, and
            columns of these (`ledger.entries.created_at`).
    """

    new_files: bool = True
    written: tuple[Text, ...] = ()
    free: tuple[Text, ...] = ()


class QueryCheck(_Weighed):
    """A query gives certain rows in the end.

    Attributes:
        rows: the rows; None: those that it gives where the gold has been at work.
    """

    database: Text
    sql: Text
    rows: tuple[tuple[Json, ...], ...] | None = None


class CommandCheck(_Weighed):
    """A command of the shell ends with status 0, run in the end state: tests of a project, a script that asserts.

    Attributes:
        run: the command.
        seconds: what it may take.
    """

    run: Text
    seconds: float = Field(default=60.0, gt=0, le=900)


class ForbiddenCheck(_Weighed):
    """Nothing forbidden was done or tried.

    Attributes:
        statements: kinds of SQL statements, some of `STATEMENTS`.
        paths: files that nothing may write to, as patterns.
    """

    statements: tuple[Text, ...] = ()
    paths: tuple[Text, ...] = ()

    @model_validator(mode="after")
    def _says_something(self) -> "ForbiddenCheck":
        unknown = [kind for kind in self.statements if kind not in STATEMENTS]
        if unknown:
            raise ValueError(f"'statements': expected some of {', '.join(STATEMENTS)}, found '{unknown[0]}'")
        if not self.statements and not self.paths:
            raise ValueError("expected 'statements' or 'paths'")
        return self


Check = AnswerCheck | StateCheck | QueryCheck | CommandCheck | ForbiddenCheck
KINDS: Mapping[
    str, type[AnswerCheck] | type[StateCheck] | type[QueryCheck] | type[CommandCheck] | type[ForbiddenCheck]
] = {
    "answer": AnswerCheck,
    "state": StateCheck,
    "query": QueryCheck,
    "command": CommandCheck,
    "forbidden": ForbiddenCheck,
}
"""The kinds of checks by name."""


def kind_of(check: Check) -> str:
    """Returns the name of a check's kind."""
    return next(name for name, kind in KINDS.items() if isinstance(check, kind))
