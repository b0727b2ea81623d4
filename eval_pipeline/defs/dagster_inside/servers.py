"""Code servers, the webserver and what they load of Dagster that are not public."""

from dagster._cli.proxy_server_manager import ProxyServerManager
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import ModuleTarget, WorkspaceFileTarget, WorkspaceLoadTarget
from dagster._grpc.client import DagsterGrpcClient

__all__ = [
    "DagsterGrpcClient",
    "ModuleTarget",
    "ProxyServerManager",
    "WorkspaceFileTarget",
    "WorkspaceLoadTarget",
    "WorkspaceProcessContext",
]


def run_daemon() -> None:
    """Runs the daemon's command line; what that loads takes half a second, so it is loaded here."""
    from dagster._daemon.cli import main

    main()
