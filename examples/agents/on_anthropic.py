"""An agent of one's own, on the SDK `anthropic`: `command: [python, on_anthropic.py]`, `folder: examples/agents`.

It knows nothing of eval-pipeline: the task comes on standard input, and its answer is the last line that it prints.
"""

import json
import os
import subprocess
import sys

from anthropic import Anthropic

TOOLS = [
    {
        "name": name,
        "description": told,
        "input_schema": {"type": "object", "properties": {field: {"type": "string"}}, "required": [field]},
    }
    for name, told, field in (
        ("shell", "Runs a command of sh in the folder and returns what it prints.", "command"),
        ("answer", "Ends the work with its answer.", "answer"),
    )
]
client = Anthropic()
messages = [{"role": "user", "content": sys.stdin.read()}]
while True:
    said = client.messages.create(
        model=os.environ.get("MODEL", "claude-opus-4-6"), max_tokens=2048, messages=messages, tools=TOOLS
    )
    messages.append({"role": "assistant", "content": [block.model_dump() for block in said.content]})
    results = []
    for call in (block for block in said.content if block.type == "tool_use"):
        if call.name == "answer":
            sys.exit(print(json.dumps(call.input)))
        ran = subprocess.run(["sh", "-c", call.input["command"]], capture_output=True, text=True)
        text = (ran.stdout + ran.stderr)[-10_000:] or "(nothing)"
        results.append(
            {"type": "tool_result", "tool_use_id": call.id, "content": text, "is_error": ran.returncode != 0}
        )
    if not results:
        sys.exit(print(said.content[-1].text))
    messages.append({"role": "user", "content": results})
