"""lm-eval: a generation task with exact match; samples are kept in memory and written as JSON. SAMPLES FOLDER."""

import json
import os
import sys
from pathlib import Path

os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_CACHE=sys.argv[2])

import lm_eval
from lm_eval.api.instance import Instance
from lm_eval.api.model import LM

samples = [json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines()]
answers = {sample["input"]: sample["answer"] for sample in samples}


class Answered(LM):
    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        return [answers[request.args[0]] for request in requests]

    def loglikelihood(self, requests: list[Instance], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        raise RuntimeError("the task asks for text only")

    loglikelihood_rolling = loglikelihood


task = {
    "task": "peer",
    "dataset_path": "json",
    "dataset_kwargs": {"data_files": {"test": sys.argv[1]}},
    "test_split": "test",
    "output_type": "generate_until",
    "doc_to_text": "{{input}}",
    "doc_to_target": "{{expected}}",
    "generation_kwargs": {"until": ["\n\n"]},
    "metric_list": [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}],
}
found = lm_eval.simple_evaluate(Answered(), tasks=[task], log_samples=True, bootstrap_iters=0, verbosity="ERROR")
Path(sys.argv[2], "samples.json").write_text(json.dumps(found["samples"]["peer"], default=str))
print(round(found["results"]["peer"]["exact_match,none"] * len(samples)))
