"""The zygote: a process in the jail that has pandas imported and forks a child for each snippet.

Frames come in on standard input and go out
on standard output: the lengths of header and body (four bytes each), a JSON header, the body. The zygote trusts what
comes in and nothing of what a child writes: the pipes of a child are only copied, up to a limit.
"""

import ctypes
import fcntl
import io
import json
import os
import resource
import select
import shutil
import signal
import struct
import time
from typing import Any, BinaryIO, NoReturn

from .snippet import run_snippet

_HEAD = struct.Struct("<II")
_PR_SET_DUMPABLE = 4
_CHUNK = 1 << 16
_RESULT_FD = 3

Told = dict[str, Any]


def serve(configuration: Told) -> None:
    """Answers requests until standard input ends."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    # Kept open: after `_confine` there may be no /proc. It tells the zygote's size, which a child starts with.
    configuration["statm"] = os.open("/proc/self/statm", os.O_RDONLY)
    os.chdir(configuration["scratch"])
    warm_up()
    if configuration["landlock"]:
        _confine(configuration)
    # A child of the same user must neither read nor trace the zygote.
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    tables: Told = {}
    baseline = _baseline(configuration, tables)
    _send(answers, {"ready": True})
    while (request := _receive(requests)) is not None:
        header, body = request
        if header["op"] == "tables":
            tables = _read_tables(header["tables"], body)
            baseline = _baseline(configuration, tables)
            _send(answers, {"ready": True})
            continue
        told, output, result = _run(header["code"], configuration, tables)
        told["peak_bytes"] = max(0, told["peak_bytes"] - baseline)
        _wipe(configuration["scratch"])
        _send(answers, {**told, "output_bytes": len(output)}, output + result)


def _confine(configuration: Told) -> None:
    """Takes the file system away from this process and its children, but for what they read."""
    from sandlock import Sandbox, confine

    confine(Sandbox(fs_readable=configuration["landlock"], fs_writable=[configuration["scratch"]]))


def warm_up() -> None:
    """Has pandas import what it imports late, so that no snippet pays for it."""
    import pandas as pd

    frame = pd.DataFrame({"a": [1, 2, 2], "b": ["x", "y", None], "c": pd.to_datetime(["2020-01-01"] * 3)})
    frame.groupby("a").agg({"c": "max"})
    frame.merge(frame, on="a").sort_values("a").query("a > 1")
    frame.pivot_table(index="b", values="a", aggfunc="sum")
    frame["c"].dt.strftime("%Y")
    frame["b"].str.upper()
    frame.describe()


def _read_tables(described: list[Told], body: bytes) -> Told:
    """DataFrames from the body, in which the tables stand one after the other."""
    import pandas as pd

    readers: dict[str, Any] = {"parquet": pd.read_parquet, "csv": pd.read_csv, "pickle": pd.read_pickle}
    tables, start = {}, 0
    for table in described:
        end = start + table["bytes"]
        tables[table["name"]] = readers[table["format"]](io.BytesIO(body[start:end]))
        start = end
    return tables


def _baseline(configuration: Told, tables: Told) -> int:
    """Peak memory of a child that does nothing."""
    told, _, _ = _run("result = None", configuration, tables)
    return int(told["peak_bytes"])


def _run(code: str, configuration: Told, tables: Told) -> tuple[Told, bytes, bytes]:
    """Runs a snippet in a child: what happened, what it printed, and the result it wrote."""
    output, output_end = os.pipe()
    result, result_end = os.pipe()
    began = time.monotonic()
    pid = os.fork()
    if pid == 0:
        _become_snippet(code, configuration, tables, output_end, result_end)
    os.close(output_end)
    os.close(result_end)
    read, stopped = _copy({output: "output", result: "result"}, configuration, began + configuration["wall_s"])
    if stopped:
        os.kill(pid, signal.SIGKILL)
    for pipe in (output, result):
        os.close(pipe)
    status, wall_hit, used = _wait(pid, began + configuration["wall_s"])
    told = {
        "stopped": stopped or ("wall" if wall_hit else None),
        "status": os.waitstatus_to_exitcode(status),
        "seconds": used.ru_utime + used.ru_stime,
        "peak_bytes": used.ru_maxrss * 1024,
    }
    return told, bytes(read[output]), bytes(read[result])


def _copy(pipes: dict[int, str], configuration: Told, deadline: float) -> tuple[dict[int, bytearray], str | None]:
    """Reads the pipes until both end; also the name of the one that had more than its limit, or `wall`."""
    read = {pipe: bytearray() for pipe in pipes}
    waiting = set(pipes)
    while waiting:
        left = deadline - time.monotonic()
        ready = select.select(list(waiting), [], [], left)[0] if left > 0 else []
        if not ready:
            return read, "wall"
        for pipe in ready:
            chunk = os.read(pipe, _CHUNK)
            if not chunk:
                waiting.discard(pipe)
            read[pipe] += chunk
            most = configuration[f"{pipes[pipe]}_bytes"]
            if len(read[pipe]) > most:
                del read[pipe][most:]
                return read, pipes[pipe]
    return read, None


def _wait(pid: int, deadline: float) -> tuple[int, bool, Any]:
    """Waits for the child, which may have closed its pipes and gone on; whether it had to be killed."""
    while True:
        found, status, used = os.wait4(pid, os.WNOHANG)
        if found:
            return status, False, used
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
            _, status, used = os.wait4(pid, 0)
            return status, True, used
        time.sleep(0.0005)


def _wipe(scratch: str) -> None:
    """Empties the scratch folder, whatever the snippet did to the permissions of what is in it."""
    for entry in os.scandir(scratch):
        if entry.is_dir(follow_symlinks=False):
            for folder, _, _ in os.walk(entry.path):
                os.chmod(folder, 0o700)
            shutil.rmtree(entry.path, ignore_errors=True)
        else:
            os.unlink(entry.path)


def _become_snippet(code: str, configuration: Told, tables: Told, output: int, result: int) -> NoReturn:
    """In the child: closes everything else, lowers the limits, runs the code."""
    try:
        os.setsid()
        # Copies above every number in use first: `result` may itself be one of the numbers to be filled.
        copies = [fcntl.fcntl(pipe, fcntl.F_DUPFD, 100) for pipe in (output, output, result)]
        for number, copy in enumerate(copies, start=1):
            os.dup2(copy, number)
        _lower_limits(configuration)
        os.closerange(_RESULT_FD + 1, 4096)
        run_snippet(code, tables, _RESULT_FD, with_filter=configuration["seccomp"])
    finally:
        os._exit(0)  # nobody looks at it: only a well-formed result counts


def _lower_limits(configuration: Told) -> None:
    size = int(os.pread(configuration["statm"], 64, 0).split()[0]) * resource.getpagesize()
    cpu = int(configuration["wall_s"]) + 1
    for kind, limit in (
        (resource.RLIMIT_AS, size + configuration["memory_bytes"]),
        (resource.RLIMIT_CPU, cpu),
        (resource.RLIMIT_FSIZE, configuration["scratch_bytes"]),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
    ):
        resource.setrlimit(kind, (limit, limit))


def _receive(pipe: BinaryIO) -> tuple[Told, bytes] | None:
    head = pipe.read(_HEAD.size)
    if len(head) < _HEAD.size:
        return None
    header_bytes, body_bytes = _HEAD.unpack(head)
    return json.loads(pipe.read(header_bytes)), pipe.read(body_bytes)


def _send(pipe: BinaryIO, header: Told, body: bytes = b"") -> None:
    text = json.dumps(header).encode()
    pipe.write(_HEAD.pack(len(text), len(body)) + text + body)
    pipe.flush()
