from random import Random

import pytest

from eval_pipeline.asking.retries import RetryPolicy
from eval_pipeline.core.model import CallErrorKind
from eval_pipeline.providers.base import CallError

BUSY = CallError(CallErrorKind.OVERLOADED, "busy", retryable=True)


def asked_to_wait(seconds: float) -> CallError:
    return CallError(CallErrorKind.RATE_LIMITED, "slow down", retryable=True, retry_after=seconds)


def test_pauses_double_up_to_the_longest() -> None:
    policy = RetryPolicy(max_retries=8, jitter=0.0)
    assert [policy.pause(BUSY, made, Random(0)) for made in range(9)] == [1, 2, 4, 8, 16, 30, 30, 30, None]


def test_what_cannot_be_helped_is_not_retried() -> None:
    assert RetryPolicy().pause(CallError(CallErrorKind.BAD_REQUEST, "no"), 0, Random(0)) is None
    assert RetryPolicy(max_retries=0).pause(BUSY, 0, Random(0)) is None


@pytest.mark.parametrize(("told", "least"), [(7.0, 7.0), (0.0, 0.0), (-3.0, 0.0), (3600.0, 60.0)])
def test_the_servers_own_wish_goes_first_up_to_a_cap(told: float, least: float) -> None:
    policy = RetryPolicy()
    for seed in range(50):
        pause = policy.pause(asked_to_wait(told), 3, Random(seed))
        assert pause is not None
        assert least <= pause <= least * 1.25


def test_jitter_spreads_the_callers() -> None:
    pauses = [RetryPolicy().pause(BUSY, 2, Random(seed)) for seed in range(50)]
    assert len(set(pauses)) == 50
    assert all(pause is not None and 3.0 <= pause <= 4.0 for pause in pauses)
