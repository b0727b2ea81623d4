"""The LLM judge: asks a model whether an answer means the same as the right one. Only this package imports AutoEvals.

async with open_judge(version, cache_file) as judge:
    judgement = await judge.judge(generated, expected, schema.ddl())
"""

from eval_pipeline.judge.cache import JudgementCache, forget_expired, purge_judgements
from eval_pipeline.judge.judge import DEFAULT_JUDGE, LLMJudge, open_judge, why_no_judge
from eval_pipeline.judge.judgement import NO_JUDGE, OVER_BUDGET, TIMEOUT, Judge, Judgement, NoJudge
from eval_pipeline.judge.prompt import SQL_MEANING, JudgePrompt, rubric_prompt

__all__ = [
    "DEFAULT_JUDGE",
    "NO_JUDGE",
    "OVER_BUDGET",
    "SQL_MEANING",
    "TIMEOUT",
    "Judge",
    "JudgePrompt",
    "Judgement",
    "JudgementCache",
    "LLMJudge",
    "NoJudge",
    "forget_expired",
    "open_judge",
    "purge_judgements",
    "rubric_prompt",
    "why_no_judge",
]
