"""An agent of one's own, on the SDK `openai`: `command: [python, on_openai.py]`, `folder: examples/agents`.

It streams what its model says, and writes its answer to the file that EVAL_ANSWER names.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from openai import OpenAI

SHELL = {
    "name": "shell",
    "description": "Runs a command of sh in the folder and returns what it prints.",
    "parameters": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
}
ANSWER = {
    "name": "answer",
    "description": "Ends the work with its answer.",
    "parameters": {"type": "object", "properties": {"answer": {}}, "required": ["answer"]},
}
client = OpenAI()
messages = [{"role": "user", "content": sys.stdin.read()}]
while True:
    with client.chat.completions.stream(
        model=os.environ.get("MODEL", "gpt-5"),
        messages=messages,
        tools=[{"type": "function", "function": one} for one in (SHELL, ANSWER)],
        stream_options={"include_usage": True},
    ) as stream:
        said = stream.get_final_completion().choices[0].message
    messages.append(said.model_dump(exclude_none=True, exclude={"parsed"}))
    for call in said.tool_calls or []:
        given = json.loads(call.function.arguments)
        if call.function.name == "answer":
            sys.exit(Path(os.environ["EVAL_ANSWER"]).write_text(json.dumps(given["answer"])) and 0)
        ran = subprocess.run(["sh", "-c", given["command"]], capture_output=True, text=True)
        text = (ran.stdout + ran.stderr)[-10_000:] or "(nothing)"
        messages.append({"role": "tool", "tool_call_id": call.id, "content": text})
    if not said.tool_calls:
        sys.exit(print(said.content))
