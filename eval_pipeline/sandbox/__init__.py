"""Model-written code runs here and nowhere else: `async with PythonSandbox() as box: await box.run(code, tables)`."""

from eval_pipeline.sandbox.limits import Limits
from eval_pipeline.sandbox.outcomes import Failed, Outcome, Ran
from eval_pipeline.sandbox.python_sandbox import PythonSandbox
from eval_pipeline.sandbox.tiers import NoSandboxError

__all__ = ["Failed", "Limits", "NoSandboxError", "Outcome", "PythonSandbox", "Ran"]
