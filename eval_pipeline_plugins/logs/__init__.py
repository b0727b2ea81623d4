"""Readers of other tools' logs as recorded answers, each with its form here and an entry point in `pyproject.toml`."""

from eval_pipeline.operations.recorded.forms import LogForm


def _form(place: str, what: str, *marks: tuple[str, ...], folders: bool = False) -> LogForm:
    return LogForm(f"{__name__}.{place}", what, folders, marks)


INSPECT = _form(
    "inspect:read_inspect",
    "a log of Inspect (.eval or .json)",
    ("header.json",),
    ("_journal/start.json",),
    ("eval.task",),
)
ATIF = _form(
    "atif:read_atif",
    "trajectories of ATIF (.json, .jsonl, a folder of them or of Harbor's jobs)",
    ("schema_version", "agent.name", "steps"),
    folders=True,
)
DATA_AGENT_BENCH_RUNS = _form(
    "data_agent_bench:read_data_agent_bench_runs",
    "runs of DataAgentBench (a folder with final_agent.json, or a submission)",
    ("dataset", "query", "run", "answer"),
    ("final_result", "terminate_reason", "messages"),
    folders=True,
)
PROMPTFOO = _form(
    "promptfoo:read_promptfoo",
    "results of promptfoo (eval --output, .json or .jsonl)",
    ("results.results.0.prompt",),
    ("results.0.prompt.raw",),
    ("prompt.raw", "provider"),
)
STATGPT_ANSWERS = _form(
    "statgpt:read_statgpt_answers",
    "artefacts of StatGPT's evaluation jobs (a .json, a folder of them, or .jsonl)",
    ("responses", "test_case"),
    folders=True,
)
LM_EVAL = _form("lm_eval:read_lm_eval", "samples of lm-evaluation-harness (--log_samples)", ("doc", "resps"))
HELM = _form("helm:read_helm", "scenario_state.json of HELM", ("request_states", "adapter_spec"))
OPENAI_EVALS = _form(
    "openai_evals:read_openai_evals", "a log of OpenAI's evals (oaieval --record_path)", ("spec.completion_fns",)
)
DEEPEVAL = _form("records:read_deepeval", "a test run of DeepEval (.json)", ("testCases",), ("testRunData.testCases",))
BRAINTRUST = _form(
    "records:read_braintrust", "an export of an experiment of Braintrust", ("root_span_id", "input", "scores")
)
LANGFUSE = _form(
    "records:read_langfuse",
    "an export of traces or observations of Langfuse",
    ("traceId", "type", "input"),
    ("trace_id", "type", "input"),
    ("observations", "input", "output"),
    ("projectId", "input", "output"),
    ("bookmarked", "input", "output"),
)
PHOENIX = _form(
    "records:read_phoenix",
    "runs of an experiment, or spans, of Phoenix",
    ("example_id", "reference_output"),
    ("dataset_example_id", "output"),
    ("context.span_id", "attributes.input.value"),
)
MLFLOW = _form(
    "records:read_mlflow",
    "an evaluation table of MLflow (eval_results_table.json)",
    ("columns", "data"),
    ("request", "response", "assessments"),
)
ROWS = _form("records:read_rows", "rows with questions and answers (.jsonl, .json, .csv, .xlsx, .parquet)")
