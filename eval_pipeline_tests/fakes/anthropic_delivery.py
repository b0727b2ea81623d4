"""How the fake Anthropic server sends a reply: whole, streamed, or spoilt as a fault says."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from eval_pipeline_tests.fakes import anthropic_faults as faulty
from eval_pipeline_tests.fakes.anthropic_faults import Fault
from eval_pipeline_tests.fakes.anthropic_messages import stream_events
from eval_pipeline_tests.fakes.http_socket import Connection


async def deliver(
    connection: Connection, fault: Fault | None, status: int, data: bytes, headers: Mapping[str, str]
) -> bool:
    """Sends a reply; whether all of it went out as it should."""
    if await _late_or_lost(connection, fault):
        return False
    cut_at = len(data) // 2 if isinstance(fault, faulty.BrokenStream) else None
    await connection.reply(status, data, headers, cut_at=cut_at)
    return cut_at is None


async def deliver_stream(
    connection: Connection, fault: Fault | None, message: Mapping[str, Any], headers: Mapping[str, str], lasts_s: float
) -> bool:
    """Sends a message as events over so many seconds; whether all of them went out as they should."""
    if await _late_or_lost(connection, fault):
        return False
    events = list(stream_events(message))
    await connection.start(200, {"content-type": "text/event-stream", **headers})
    for sent, event in enumerate(events):
        match fault:
            case faulty.BrokenStream(after, in_order) if sent == after:
                if in_order:
                    await connection.finish()
                connection.close()
                return False
            case faulty.ErrorEvent(kind, text, after) if sent == after:
                await connection.send(_event({"type": "error", "error": {"type": kind, "message": text}}))
                await connection.finish()
                return False
            case faulty.Malformed() if sent == len(events) - 2:
                await connection.send(b'event: message_delta\ndata: {"type": "message_del\n\n')
                await connection.finish()
                return False
        await connection.send(_event(event))
        if lasts_s:
            await asyncio.sleep(lasts_s / len(events))
    await connection.finish()
    return True


async def _late_or_lost(connection: Connection, fault: Fault | None) -> bool:
    """Waits where the fault says so; whether the reply is not to be sent at all."""
    if isinstance(fault, faulty.Slow | faulty.LostReply):
        await asyncio.sleep(fault.seconds)
    if isinstance(fault, faulty.LostReply):
        connection.reset()
        return True
    return False


def _event(event: Mapping[str, Any]) -> bytes:
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
