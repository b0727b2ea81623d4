"""Dagster's webserver behind the guard: `python -m eval_pipeline.defs.running.webserver HOST PORT FILE`.

FILE lists the code servers, in the form of a `workspace.yaml`.
"""

import os
import sys

import dagster as dg
import uvicorn
from dagster_webserver.app import create_app_from_workspace_process_context

from eval_pipeline.core.home import find_home
from eval_pipeline.core.system.supervision import end_with_supervisor
from eval_pipeline.defs.dagster_inside.servers import WorkspaceFileTarget, WorkspaceProcessContext
from eval_pipeline.web.asgi import Guarded
from eval_pipeline.web.guard import LOOPBACK, NO_TOKEN, Door, further_names, token_of

_POLL_MS = 2000


def door(host: str, port: int) -> Door:
    """Returns the guard's rules for the UI at an address."""
    token = None if os.environ.get(NO_TOKEN) == "1" else token_of(find_home().ui_token)
    return Door(port, token, LOOPBACK | {host.lower()}, further_names())


def main(host: str, port: int, file: str) -> None:
    """Serves until it is ended."""
    end_with_supervisor()
    with dg.DagsterInstance.get() as instance:
        # Statements of the UI's pages may take up to 15 s; connections are kept for an hour.
        instance.optimize_for_webserver(15_000, 3_600, 20)
        with WorkspaceProcessContext(instance, WorkspaceFileTarget([file])) as context:
            application = create_app_from_workspace_process_context(context, "", _POLL_MS)
            uvicorn.run(Guarded(application, door(host, port)), host=host, port=port, log_level="warning")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
