"""The SQL runner: SQL that a model wrote, in a child process, read-only, within limits."""

from eval_pipeline.sandbox.sql.errors import SqlError, SqlFaultError
from eval_pipeline.sandbox.sql.limits import SqlLimits
from eval_pipeline.sandbox.sql.rows import SqlRows
from eval_pipeline.sandbox.sql.runner import SqlProcesses, SqlRunner, shared_processes

__all__ = ["SqlError", "SqlFaultError", "SqlLimits", "SqlProcesses", "SqlRows", "SqlRunner", "shared_processes"]
