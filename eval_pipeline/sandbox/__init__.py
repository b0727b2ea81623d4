"""Model-written code runs here and nowhere else: `async with PythonSandbox() as box: await box.run(code, tables)`.

`BlockingSandbox` is the same for callers without an event loop; `results.as_pandas(ran.result)` gives the pandas value.
"""

from eval_pipeline.sandbox.blocking import BlockingSandbox
from eval_pipeline.sandbox.limits import Limits
from eval_pipeline.sandbox.outcomes import Measurement, Outcome, SnippetFailed, SnippetRan
from eval_pipeline.sandbox.python_sandbox import PythonSandbox
from eval_pipeline.sandbox.tiers import NoSandboxError

__all__ = [
    "BlockingSandbox",
    "Limits",
    "Measurement",
    "NoSandboxError",
    "Outcome",
    "PythonSandbox",
    "SnippetFailed",
    "SnippetRan",
]
