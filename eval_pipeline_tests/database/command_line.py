"""The command line on a host of its own: python -m eval_pipeline_tests.database.command_line NAME HOME DATA."""

import socket
import sys

from eval_pipeline_tests import remote

if __name__ == "__main__":
    name = sys.argv[1]
    socket.gethostname = lambda: name
    sys.argv[1:] = remote.RUN
    remote.main()
