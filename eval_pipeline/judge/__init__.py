"""The LLM judge: asks a model whether an answer means the same as the right one. Only this package imports AutoEvals.

async with open_judge(version, cache_file) as judge:
    judgement = await judge.judge(generated, expected, schema.ddl())
"""
