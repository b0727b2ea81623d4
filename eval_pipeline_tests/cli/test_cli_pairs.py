"""Pairs of a model version and a suite that cannot be evaluated: told, never scored as if nothing were wrong."""

from eval_pipeline_tests.support import Lab

NO_RATES = {"name": "sim", "provider": "simulated", "options": {"tracks": {"sql": {}}}}
RUN = ("run", "--no-report")


def test_a_stand_in_without_rates_is_refused_where_it_is_named(lab: Lab) -> None:
    lab.suite()
    lab.versions(NO_RATES, {"name": "oracle", "provider": "oracle"})
    for command in (RUN, ("plan",)):
        said = lab.cli(*command, "--suite", "small", "--model-version", "sim")
        assert said.code == 2
        assert "'sim' cannot be evaluated on 'small': it has no rates for the track 'finqa'" in said.err


def test_it_is_skipped_with_a_note_where_it_is_not(lab: Lab) -> None:
    lab.suite()
    lab.suite("other")
    lab.versions(NO_RATES, {"name": "oracle", "provider": "oracle"})
    said = lab.cli(*RUN)
    assert said.code == 0, said.err
    assert "note: 'sim' is not evaluated on other, small: it has no rates for the track 'finqa'\n" in said.err
    assert lab.sql("SELECT DISTINCT model_version FROM turn_results") == [("oracle",)]


def test_nothing_left_to_evaluate_is_an_error_with_the_first_reason(lab: Lab) -> None:
    lab.suite()
    lab.versions(NO_RATES)
    said = lab.cli(*RUN)
    assert (said.code, "'sim' cannot be evaluated on 'small': it has no rates" in said.err) == (2, True)


def test_rates_left_empty_on_purpose_are_a_stand_in_that_never_fails(lab: Lab) -> None:
    lab.suite()
    lab.versions({"name": "sim", "provider": "simulated", "options": {"rates": {}}})
    lab.evaluate(version="sim", upto="turn_metrics")
    assert lab.one("SELECT avg(correct::INT) FROM turn_results") == 1.0
