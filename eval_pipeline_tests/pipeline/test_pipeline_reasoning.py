"""What a model thinks aloud, or its provider tells apart, is kept and never scored."""

import json

from eval_pipeline.providers.base import Call
from eval_pipeline_tests.support import Answer, Lab, Puppet, number, response


def test_reasoning_is_kept_apart_shown_and_never_the_answer(small: Lab, puppet: type[Puppet]) -> None:
    def answer(call: Call) -> Answer:
        right = call.gold.oracle()
        match f"{call.case_id}#{call.turn_index}":
            case "alpha#0":
                return f"<think>Try {number(17)}</think>{right}"
            case "alpha#1":
                return response(right, reasoning=f"It may be {number(17)}")
        return f"\ufeff<think>I would say {right}"  # a byte order mark, and cut off before it answered

    puppet.answer = staticmethod(answer)
    small.evaluate(publish=True)
    kept = {
        (case, turn): (reasoning, call_error)
        for case, turn, reasoning, call_error in small.sql(
            "SELECT case_id, turn_index, reasoning, call_error FROM attempts WHERE number = 0"
        )
    }
    assert kept[("alpha", 0)] == (f"Try {number(17)}", None)
    assert kept[("alpha", 1)] == (f"It may be {number(17)}", None)
    thought, why = kept[("beta", 0)]
    assert (thought.startswith("I would say"), why) == (True, "max_tokens")
    correct = dict(small.sql("SELECT turn_id, correct FROM turn_results"))
    assert sorted(correct.values()) == [False, True, True]
    turn_id = small.one("SELECT turn_id FROM turns WHERE case_id = 'alpha' AND turn_index = 0")
    explained = small.sql(f"SELECT details FROM explain_turn('{turn_id}', 'puppet') WHERE kind = 'response'")
    assert json.loads(explained[0][0])["reasoning"] == f"Try {number(17)}"
