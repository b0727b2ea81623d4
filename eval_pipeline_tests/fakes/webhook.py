"""A webhook that takes notifications, and misbehaves as told."""

import json
from collections.abc import Sequence
from typing import Any

from eval_pipeline_tests.fakes.http_socket import Connection, Request, SocketServer

RESET, HANG = 0, -1


class Webhook(SocketServer):
    """Answers 200, or first what the script says: statuses, RESET for a connection that breaks, HANG for no answer.

    Attributes:
        posted: the decoded bodies (texts where they are plain), those that were refused among them.
    """

    def __init__(self, script: Sequence[int] = ()) -> None:
        super().__init__()
        self._script = list(script)
        self.posted: list[Any] = []

    async def handle(self, request: Request, connection: Connection) -> None:
        plain = request.headers.get("content-type", "").startswith("text/plain")
        self.posted.append(request.body.decode() if plain else json.loads(request.body))
        status = self._script.pop(0) if self._script else 200
        if status == RESET:
            connection.reset()
        elif status != HANG:
            await connection.reply(status, b"ok" if status == 200 else b"no")
