"""deepeval: one metric of our own without a model; its results are kept in a file. SAMPLES FOLDER."""

import json
import os
import sys
from pathlib import Path

os.environ.update(DEEPEVAL_TELEMETRY_OPT_OUT="YES", DEEPEVAL_RESULTS_FOLDER=sys.argv[2])

from deepeval import evaluate
from deepeval.evaluate import AsyncConfig, CacheConfig, DisplayConfig
from deepeval.metrics import BaseMetric
from deepeval.test_case import LLMTestCase

samples = [json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines()]


class Equal(BaseMetric):
    def __init__(self) -> None:
        self.threshold = 1.0
        self.async_mode = False

    def measure(self, test_case: LLMTestCase, *args: object, **kwargs: object) -> float:
        self.score = float(test_case.actual_output == test_case.expected_output)
        self.success = self.score >= self.threshold
        return self.score

    async def a_measure(self, test_case: LLMTestCase, *args: object, **kwargs: object) -> float:
        return self.measure(test_case)

    def is_successful(self) -> bool:
        return self.success

    @property
    def __name__(self) -> str:
        return "Equal"


cases = [
    LLMTestCase(input=one["input"], actual_output=one["answer"], expected_output=one["expected"]) for one in samples
]
result = evaluate(
    cases,
    [Equal()],
    async_config=AsyncConfig(run_async=False),
    cache_config=CacheConfig(write_cache=False),
    display_config=DisplayConfig(show_indicator=False, print_results=False),
)
print(sum(test.success for test in result.test_results))
