"""What a model thought aloud is no answer, in whatever form it is written, in any track."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.tracks.registry import load_track
from eval_pipeline.tracks.texts import reasoning
from eval_pipeline.tracks.texts.reasoning import apart
from eval_pipeline_tests.goldens import golden

FRAMES, TRACKS = golden("reasoning.yaml")["frames"], golden("reasoning.yaml")["tracks"]
RESPONSES = [(frame, track) for frame in FRAMES for track in TRACKS]


def filled(frame: dict[str, str], track: str) -> str:
    texts = TRACKS[track]
    return frame["text"].replace("{draft}", texts["draft"]).replace("{answer}", texts["answer"])


@pytest.mark.parametrize(
    ("frame", "track"), RESPONSES, ids=[f"{track}-{frame['family']}-{n}" for n, (frame, track) in enumerate(RESPONSES)]
)
def test_the_draft_is_not_the_answer(frame: dict[str, str], track: str) -> None:
    said = apart(filled(frame, track))
    found: Any = load_track(track)
    if frame["reads"] == "nothing":
        assert said.cut_off
        assert said.answer == ""
        return
    assert not said.cut_off
    assert found.parse(said.answer, recorded=False) == found.parse(TRACKS[track]["answer"], recorded=False)
    if frame["family"] != "none" and "\n\n</think>" not in frame["text"]:
        assert TRACKS[track]["draft"] in said.reasoning


def test_there_are_enough() -> None:
    assert len(RESPONSES) >= 60
    assert len({frame["family"] for frame in FRAMES if frame["family"] != "none"}) >= 5


@given(st.text())
def test_texts_without_marks_are_the_answer_as_they_are(text: str) -> None:
    if "<" not in text and "[" not in text and "◁" not in text and "here is" not in text.lower():
        assert apart(text).answer == text


@given(st.sampled_from(reasoning._HINTS), st.sampled_from([str, str.upper, str.title]), st.sampled_from(["", "é"]))
def test_hints_are_found_in_whatever_letters(hint: str, written: Any, other: str) -> None:
    assert reasoning._hints(f"so{other} {written(hint)}")
    assert not reasoning._hints(f"so{other} {written(hint[:-1])}")


def test_the_long_s_counts_as_an_s() -> None:
    assert apart("<rea\u017foning>no</rea\u017foning>yes").answer == "yes"


@given(
    st.lists(st.sampled_from(["<think>", "</think>", "```", "\n", "x", "[THINK]", "[/THINK]", "<|channel|>", "final"]))
)
def test_nothing_is_lost_or_said_twice(parts: list[str]) -> None:
    said = apart("".join(parts))
    assert (said.reasoning + said.answer).count("x") <= parts.count("x")
    assert not (said.cut_off and said.answer)


@pytest.mark.parametrize(
    ("text", "reasoning", "answer"),
    [
        (
            "<|channel|>analysis<|message|>no<|end|><|start|>assistant<|channel|>final<|message|>yes<|return|>",
            "no",
            "yes",
        ),
        ("<|channel|>commentary to=f <|constrain|>json<|message|>{}<|call|><|channel|>final<|message|>a", "{}", "a"),
        ("<|channel|>final<|message|>a <|message|> b<|end|>", "", "a <|message|> b"),
        ("<|channel|> <|channel|>final<|message|>a", "", "a"),
        (" <answer>a </s> <|im_end|>\n", "", "a "),
        ("a </s> b", "", "a </s> b"),
    ],
)
def test_channels_and_what_is_around_an_answer(text: str, reasoning: str, answer: str) -> None:
    said = apart(text)
    assert (said.reasoning, said.answer) == (reasoning, answer)
