"""Readers of other tools' logs as recorded answers, each with its form here and an entry point in `pyproject.toml`."""

from eval_pipeline.operations.recorded.forms import LogForm

INSPECT = LogForm(f"{__name__}.inspect:read_inspect", "a log of Inspect (.eval or .json)")
PROMPTFOO = LogForm(f"{__name__}.promptfoo:read_promptfoo", "results of promptfoo (eval --output, .json or .jsonl)")
STATGPT_ANSWERS = LogForm(
    f"{__name__}.statgpt:read_statgpt_answers",
    "artefacts of StatGPT's evaluation jobs (a .json, a folder of them, or .jsonl)",
    folders=True,
)
LM_EVAL = LogForm(f"{__name__}.lm_eval:read_lm_eval", "samples of lm-evaluation-harness (--log_samples)")
