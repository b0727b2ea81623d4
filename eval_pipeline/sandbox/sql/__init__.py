"""Runs model-written SQL in a child process, read-only and within limits."""

from eval_pipeline.sandbox.sql.errors import SqlError, SqlFaultError, UnreachableError
from eval_pipeline.sandbox.sql.limits import SqlLimits
from eval_pipeline.sandbox.sql.rows import SqlRows
from eval_pipeline.sandbox.sql.runner import SqlProcesses, SqlRunner, patience_with, shared_processes

__all__ = [
    "SqlError",
    "SqlFaultError",
    "SqlLimits",
    "SqlProcesses",
    "SqlRows",
    "SqlRunner",
    "UnreachableError",
    "patience_with",
    "shared_processes",
]
