"""Files of reviews: nothing that was said is lost, whatever ends the process or git makes of the files."""

import json
import os
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError

from eval_pipeline.core.errors import StoreError
from eval_pipeline.core.ids import text_hash
from eval_pipeline.suites.cases import read_suite
from eval_pipeline.suites.headers import load_suite, read_header
from eval_pipeline.suites.reviews.files import add_review, file_of, read_reviews
from eval_pipeline.suites.reviews.review import (
    AnswerKey,
    Review,
    by_answer,
    current,
    is_disputed,
    response_hash,
    verdict_of,
)
from eval_pipeline_tests.support import DAY, Lab

START = datetime(2026, 3, 1, tzinfo=UTC)


def review(number: int = 0, **said: Any) -> Review:
    """A review that says so much by itself."""
    told = {"who": "ann", "turn_id": f"small/alpha#{number}", "model_version": "puppet", "eval_date": DAY, "sample": 0}
    told |= {"response_hash": text_hash("50"), "verdict": "right", "at": START + timedelta(seconds=number)}
    return Review.new(**(told | said))


def git(folder: Path, *arguments: str, check: bool = True) -> "subprocess.CompletedProcess[str]":
    own = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main")
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    return subprocess.run(
        ["git", *own, *arguments], cwd=folder, env=environment, check=check, capture_output=True, text=True
    )


def test_what_is_added_is_there_in_order_of_time(tmp_path: Path) -> None:
    made = [review(2), review(1, who="Bo Ü."), review(0, note="a\nb", tag="unit", gold_wrong=True, correction={"a": 1})]
    for one in made:
        add_review(tmp_path, one)
    found = read_reviews(tmp_path)
    assert found.reviews == tuple(reversed(made))
    assert found.problems == ()
    assert sorted(path.name for path in (tmp_path / "reviews").iterdir()) == sorted(
        [".gitattributes", "ann.jsonl", file_of(tmp_path, "Bo Ü.").name]
    )


def test_people_whose_names_look_alike_have_files_of_their_own(tmp_path: Path) -> None:
    names = ["ann", "Ann", "ann ", "a n n", "../ann", "Ünn", "ünn", "…"]
    assert len({file_of(tmp_path, name).name.casefold() for name in names}) == len(names)
    assert all(file_of(tmp_path, name).parent == tmp_path / "reviews" for name in names)


def test_reviews_are_no_part_of_the_suite(lab: Lab) -> None:
    folder = lab.suite()
    before = load_suite(read_header(folder)).content_hash
    add_review(folder, review())
    assert load_suite(read_header(folder)).content_hash == before
    header = (folder / "suite.yaml").read_text()
    (folder / "suite.yaml").write_text(header.replace("cases/*.yaml", "'**/*.*'"))
    assert [case.id for case in read_suite(read_header(folder)).cases] == ["alpha", "beta"]
    (folder / "suite.yaml").write_text(header.replace("cases/*.yaml", "reviews/*.jsonl"))
    said = lab.cli("validate")
    assert said.code == 2
    assert "suite.yaml:4: cases: the folder 'reviews' of a suite is for reviews of answers" in said.err


TORN = review(1).line().encode()


@pytest.mark.parametrize("cut", [1, 40, len(TORN) - 2, len(TORN) - 1])
def test_a_torn_last_line_is_told_and_kept_aside_unless_it_only_lacks_its_end(tmp_path: Path, cut: int) -> None:
    path, whole = add_review(tmp_path, review(0)), cut == len(TORN) - 1
    with path.open("ab") as file:
        file.write(TORN[:cut])
    told = [(found.line, "was cut off" in found.message) for found in read_reviews(tmp_path).problems]
    assert told == ([] if whole else [(2, True)])
    add_review(tmp_path, review(2))
    found = read_reviews(tmp_path)
    assert [one.turn_id[-1] for one in found.reviews] == (["0", "1", "2"] if whole else ["0", "2"])
    assert found.problems == ()
    torn = path.with_suffix(".torn")
    assert not torn.exists() if whole else torn.read_bytes() == TORN[:cut] + b"\n"


def test_a_full_disk_leaves_no_half_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = add_review(tmp_path, review(0))
    before, write = path.read_bytes(), os.pwrite

    def full(handle: int, data: bytes, offset: int) -> int:
        if offset > len(before):
            raise OSError(28, "No space left on device")
        return write(handle, data[:30], offset)

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(StoreError, match="no room on the disk"):
        add_review(tmp_path, review(1))
    assert path.read_bytes() == before


def test_a_folder_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "reviews").write_text("a file")
    with pytest.raises(StoreError) as caught:
        add_review(tmp_path, review())
    assert str(caught.value).endswith(f"reviews are kept beside the suite, so its folder {tmp_path} has to be writable")


def test_a_file_that_a_checkout_replaces_meanwhile_gets_the_review_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = add_review(tmp_path, review(0))
    fsync, replaced = os.fsync, []

    def checkout(handle: int) -> None:
        fsync(handle)
        if not replaced:
            replaced.append(path.rename(tmp_path / "old"))
            path.write_bytes((tmp_path / "old").read_bytes().splitlines(keepends=True)[0])

    monkeypatch.setattr(os, "fsync", checkout)
    add_review(tmp_path, review(1))
    assert replaced
    assert [one.turn_id[-1] for one in read_reviews(tmp_path).reviews] == ["0", "1"]


@given(st.binary(max_size=200))
def test_whatever_is_in_a_file_the_reviews_beside_it_are_read(
    tmp_path_factory: pytest.TempPathFactory, junk: bytes
) -> None:
    folder = tmp_path_factory.mktemp("junk")
    path = add_review(folder, review(0))
    path.write_bytes(path.read_bytes() + junk.replace(b"\n", b" ") + b"\n" + review(1).line().encode())
    assert [one.turn_id[-1] for one in read_reviews(folder).reviews] == ["0", "1"]


HOSTILE = st.text(st.characters(codec=None), min_size=1, max_size=50)


@given(who=HOSTILE, note=HOSTILE, tag=HOSTILE)
@example(who="\ud800", note="\udfff", tag="\ud800")
def test_any_text_comes_back(tmp_path_factory: pytest.TempPathFactory, who: str, note: str, tag: str) -> None:
    folder = tmp_path_factory.mktemp("text")
    try:
        made = review(0, who=who, note=note, tag=tag)
    except ValidationError:
        assert not who.strip() or not tag.strip()
        return
    path = add_review(folder, made)
    assert path.parent == folder / "reviews"
    assert path.read_bytes().count(b"\n") == 1
    assert read_reviews(folder).reviews == (made,)


@pytest.mark.parametrize("begun", [True, False])
def test_two_branches_are_merged_without_conflict_and_without_loss(tmp_path: Path, begun: bool) -> None:
    """Also where both of them begin to review."""
    git(tmp_path, "init", "-q")
    made = [review(0)] if begun else []
    for one in made:
        add_review(tmp_path, one)
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "first")
    for branch, people in (("left", ("ann", "bo")), ("right", ("ann", "cy"))):
        git(tmp_path, "checkout", "-q", "-b", branch, "main")
        for number in range(10):
            made.append(review(number, who=people[number % 2], note=branch))
            add_review(tmp_path, made[-1])
        git(tmp_path, "add", "-A")
        git(tmp_path, "commit", "-qm", branch)
    git(tmp_path, "merge", "-q", "left", "-m", "both")
    found = read_reviews(tmp_path)
    assert {one.id for one in found.reviews} == {one.id for one in made}
    assert found.problems == ()


def test_of_a_conflict_that_somebody_committed_both_sides_are_read(tmp_path: Path) -> None:
    one, other = review(0), review(1)
    path = add_review(tmp_path, one)
    text = path.read_text()
    path.write_text(f"<<<<<<< HEAD\n{text}=======\n{other.line()}>>>>>>> left\n{text}")
    found = read_reviews(tmp_path)
    assert found.reviews == (one, other)
    assert [problem.line for problem in found.problems] == [1, 3, 5]


def test_an_id_that_is_there_twice_with_other_words_is_told(tmp_path: Path) -> None:
    path = add_review(tmp_path, one := review(0))
    path.write_text(path.read_text() + one.model_copy(update={"verdict": "wrong"}).line())
    found = read_reviews(tmp_path)
    assert found.reviews == (one,)
    assert "another review has the id" in found.problems[0].message


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"verdict": "maybe"}, "verdict: expected 'right', 'wrong' or 'cannot_tell', found 'maybe'"),
        ({"probability": 0.5}, "'queue' and 'probability' come together"),
        ({"turn_id": "alpha"}, "turn_id"),
        ({"correction": {"a": 1}}, "needs 'gold_wrong: true'"),
        ({"colour": "red"}, "colour: unknown field"),
        ({"who": " "}, "who: expected a text that says it, found none"),
    ],
)
def test_a_line_that_is_no_review_is_told_with_its_field(tmp_path: Path, wrong: dict[str, Any], told: str) -> None:
    path = add_review(tmp_path, review(0))
    path.write_text(path.read_text() + json.dumps(json.loads(review(1).line()) | wrong) + "\n")
    found = read_reviews(tmp_path)
    assert len(found.reviews) == 1
    assert str(found.problems[0]).startswith(f"{tmp_path.name}/reviews/ann.jsonl:2: ")
    assert told in str(found.problems[0])


def test_the_last_word_of_a_person_on_an_answer_counts() -> None:
    first, other = review(0), review(1, who="bo", turn_id="small/alpha#0", verdict="wrong")
    again = review(2, turn_id="small/alpha#0", verdict="wrong")
    elsewhere = review(3, turn_id="small/alpha#0", response_hash=text_hash("51"))
    taken_back = review(4, turn_id="small/beta#0", supersedes=elsewhere.id, response_hash=text_hash("51"))
    not_theirs = review(5, who="cy", turn_id="small/beta#1", supersedes=other.id)
    found = current([again, not_theirs, taken_back, elsewhere, other, first])
    assert found == [other, again, taken_back, not_theirs]
    # Two that supersede each other do not both vanish.
    one = review(0)
    last = review(1, supersedes=one.id)
    assert current([one.model_copy(update={"supersedes": last.id}), last]) == [last]


@pytest.mark.parametrize(
    ("said", "verdict", "disputed"),
    [
        (["right"], "right", False),
        (["right", "wrong"], None, True),
        (["right", "wrong", "wrong"], "wrong", True),
        (["right", "cannot_tell"], "right", False),
        (["cannot_tell", "cannot_tell"], "cannot_tell", False),
    ],
)
def test_what_people_say_together(said: list[str], verdict: str | None, disputed: bool) -> None:
    reviews = [review(0, who=str(number), verdict=word) for number, word in enumerate(said)]
    assert verdict_of(reviews) == verdict
    assert is_disputed(reviews) == disputed
    assert list(by_answer(reviews)) == [AnswerKey("small/alpha#0", "puppet", text_hash("50"))]


def test_gold_that_only_one_calls_wrong_is_disputed_and_no_response_has_a_hash_too() -> None:
    assert is_disputed([review(0), review(0, who="bo", gold_wrong=True)])
    assert response_hash(None) == response_hash("") == text_hash("")
