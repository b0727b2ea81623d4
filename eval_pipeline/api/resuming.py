"""The process that goes on with a run that ended early: `python -m eval_pipeline.api.resuming ID`."""

import sys

from eval_pipeline.api.drawing import evaluate_until
from eval_pipeline.api.evaluating import evaluate
from eval_pipeline.api.homes import at_home
from eval_pipeline.core.covering.until import Until
from eval_pipeline.core.errors import EvalError
from eval_pipeline.operations.upkeep.resuming import limit_of, partitions_of, request_of
from eval_pipeline.workspace.asked.scope import Scope
from eval_pipeline.workspace.progress import SILENT
from eval_pipeline.workspace.workspace import Workspace


def main(known_as: str) -> int:
    """Goes on with a run of the home that the environment names; prints problems, and returns the exit code."""
    try:
        with at_home() as home:
            workspace, request = Workspace(home), request_of(home, known_as)
            places, epoch, limit = partitions_of(request), request["epoch"], limit_of(request)
            how = {"report": request["report"], "canary": request["canary"], "cost_limit": limit, "known_as": known_as}
            if request["until"] is None:
                scope = Scope.from_label(request["scope"])
                found = evaluate(workspace, places, scope, epoch, SILENT, **how)
            else:
                label, seed = request["until"]
                found = evaluate_until(workspace, places, (Until.parse(label), seed), epoch, SILENT, **how)
    except EvalError as error:
        print(error)
        return 2
    print("\n".join([*found.notes, *found.problems]))
    return 1 if found.problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
