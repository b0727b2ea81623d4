"""Runs code that models wrote; no other part of the product may do so.

Example: `async with PythonSandbox() as box: await box.run(code, tables)`.

`BlockingSandbox` does the same for callers without an event loop. `results.as_pandas(ran.result)` returns the pandas
value.
"""

from eval_pipeline.sandbox.blocking import BlockingSandbox
from eval_pipeline.sandbox.limits import Limits
from eval_pipeline.sandbox.python_sandbox import Assertions, PythonSandbox
from eval_pipeline.sandbox.returned.outcomes import Measurement, Outcome, SnippetFailed, SnippetRan
from eval_pipeline.sandbox.tiers import NoSandboxError

__all__ = [
    "Assertions",
    "BlockingSandbox",
    "Limits",
    "Measurement",
    "NoSandboxError",
    "Outcome",
    "PythonSandbox",
    "SnippetFailed",
    "SnippetRan",
]
