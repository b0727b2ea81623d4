"""JUnit files keep to their schema and Markdown shows texts as they are, whatever is in them."""

from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from lxml import etree
from markdown_it import MarkdownIt
from markdown_it.token import Token

from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.model import Partition
from eval_pipeline.operations.ci.gates import GateVerdict, evaluated
from eval_pipeline.operations.ci.junit import check_place, junit, write_junit
from eval_pipeline.operations.ci.markdown import block, bullets, code, table, words
from eval_pipeline.operations.ci.summaries import SUMMARY, _when, add_to_summary

SCHEMA = etree.XMLSchema(etree.parse(str(Path(__file__).with_name("junit.xsd"))))
NOW = datetime(2026, 3, 1, 12, 30, 5, 999, tzinfo=UTC)
HOSTILE = (
    "a|b",
    "`code` ``two``",
    "<script>alert(1)</script>",
    "<!-- comment",
    "**bold** _it_ ~~gone~~",
    "[link](http://evil.example) ![](x)",
    "https://evil.example/?a=b www.evil.example a@evil.example",
    "@someone #12 &amp; &#64; \\| \\\\|",
    "a\nb\r\n# head\n- item",
    "| --- |",
    "- item",
    "1. item",
    "\u202egnp\u200b",
    "$x$",
    "\x00\x1b[31m",
    "=== a",
    " ",
    "`",
)
TEXTS = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=40))
MARKDOWN = MarkdownIt("commonmark", {"html": True, "linkify": True}).enable(["table", "strikethrough", "linkify"])


def tokens(text: str) -> list[Token]:
    found = MARKDOWN.parse(text)
    return [*found, *(child for token in found for child in token.children or ())]


def kinds(text: str) -> set[str]:
    return {token.type for token in tokens(text)}


def verdict(**more: object) -> GateVerdict:
    fields: dict[str, object] = {"suite": "s", "subject": "m", "name": "correct >= 0.8"}
    return GateVerdict(**(fields | more))  # type: ignore[arg-type]


VERDICTS = st.builds(
    GateVerdict,
    suite=TEXTS.filter(str.strip).filter(str.isprintable),
    subject=TEXTS,
    name=TEXTS,
    failure=st.none() | TEXTS,
    broke=st.booleans(),
)


@settings(max_examples=60)
@given(st.lists(VERDICTS, max_size=6))
@example([])
@example([verdict(failure=text, name=text) for text in HOSTILE])
def test_a_junit_file_is_valid_whatever_it_tells(verdicts: list[GateVerdict]) -> None:
    found = etree.fromstring(junit(verdicts, NOW))
    SCHEMA.assertValid(found)
    cases = found.findall("testsuite/testcase")
    assert len(cases) == len(verdicts)
    for name, broke in (("failures", False), ("errors", True)):
        expected = sum(one.failure is not None and one.broke is broke for one in verdicts)
        assert sum(int(suite.get(name)) for suite in found) == expected
    assert sum(int(suite.get("tests")) for suite in found) == len(verdicts)
    assert [suite.get("id") for suite in found] == [str(number) for number in range(len(found))]


def test_the_schema_refuses_what_the_form_does_not_allow() -> None:
    good = junit([verdict(failure="x"), verdict(failure="y", broke=True)], NOW).decode()
    for old, new in (
        ('hostname="localhost"', ""),
        ("<properties />", ""),
        ("2026-03-01T12:30:05", "2026-03-01T12:30:05Z"),
        ('type="failure"', ""),
        ('tests="2"', 'tests="two"'),
        ("<system-out />", "<other />"),
    ):
        assert old in good
        assert not SCHEMA.validate(etree.fromstring(good.replace(old, new).encode()))


def test_verdicts_of_one_place_stand_together() -> None:
    found = etree.fromstring(junit([verdict(), verdict(suite="t"), verdict(name="other", failure="why")], NOW))
    assert [suite.get("name") for suite in found] == ["s/m", "t/m"]
    assert [case.get("name") for case in found[0].findall("testcase")] == ["correct >= 0.8", "other"]
    assert found[0].find("testcase/failure").get("message") == "why"


@pytest.mark.parametrize("place", ["folder", "folder/missing/file.xml", "folder/file.txt/file.xml"])
def test_a_place_for_no_file_is_refused(place: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file.txt").touch()
    with pytest.raises(UsageError, match=r"--junit .*: expected a file in a folder that exists"):
        check_place(tmp_path / place)
    with pytest.raises(UsageError, match=r"--junit .*: cannot be written: "):
        write_junit(tmp_path / place, [])


def test_problems_belong_to_their_evaluation() -> None:
    places = [Partition("s", "m", date(2026, 3, 1)), Partition("s", "m2", date(2026, 3, 1))]
    found = evaluated(places, places[1:], ["s, m2: a check", "s: of the suite", "s, m: broken", "something else"])
    assert [(one.subject, one.failure, one.broke) for one in found] == [
        ("m", "s: of the suite\ns, m: broken", True),
        ("m2", "s, m2: a check\ns: of the suite", False),
        ("run", "something else", True),
    ]
    assert evaluated(places[:1], [], [])[0].failure == "it was not evaluated to its end"
    assert evaluated(places[:1], places, [])[0].failure is None


@settings(max_examples=150)
@given(TEXTS)
@example("\\|")
@example("a\\")
def test_a_code_span_is_nothing_else(text: str) -> None:
    found = MARKDOWN.parse(f"x {code(text)} y")
    children = [token.type for token in found[1].children or ()]
    assert children == ["text", "code_inline", "text"]
    assert len(found) == 3


@settings(max_examples=150)
@given(TEXTS)
@example("0.AC")
@example("see www.example.com or example.org/x")
@pytest.mark.parametrize("frame", ["x {} y", "{}", "**{}**", "- {}"])
def test_words_are_nothing_but_text(frame: str, text: str) -> None:
    allowed = {
        "x {} y": {"paragraph_open", "paragraph_close", "inline", "text"},
        "{}": {"paragraph_open", "paragraph_close", "inline", "text"},
        "**{}**": {"paragraph_open", "paragraph_close", "inline", "text", "strong_open", "strong_close", "hr"},
        "- {}": {"paragraph_open", "paragraph_close", "inline", "text", "bullet_list_open", "bullet_list_close"}
        | {"list_item_open", "list_item_close"},
    }
    assert kinds(frame.format(words(text))) <= allowed[frame] | {"text_special"}


@settings(max_examples=100)
@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=4))
@example([("a\\|b", "\\"), ("|", "||")])
def test_a_table_has_the_cells_that_it_was_given(rows: list[tuple[str, str]]) -> None:
    lines = table(["a", "b"], [[code(first), words(second)] for first, second in rows])
    found = MARKDOWN.parse("\n".join(lines))
    assert [token.type for token in found].count("tr_open") == 1 + len(rows)
    assert [token.type for token in found].count("td_open") == 2 * len(rows)
    cells = [found[place + 1] for place, token in enumerate(found) if token.type == "td_open"]
    for cell, (first, _) in zip(cells[::2], rows, strict=True):
        (span,) = cell.children or ()
        assert (span.type, span.content.split()) == ("code_inline", _shown(first).split())
    inside = {token.type for token in tokens("\n".join(lines))}
    assert not inside & {"html_inline", "html_block", "link_open", "image", "em_open", "strong_open", "s_open"}


def _shown(text: str) -> str:
    """The text with bars that no table can hold replaced, and without what cannot be seen."""
    return "".join(
        "¦" if char == "|" else char if code(f"a{char}a") == f"`a{char}a`" or char == "`" else " " for char in text
    )


@pytest.mark.parametrize("text", ["@someone", "#12", "a@b"])
def test_nobody_is_mentioned(text: str) -> None:
    assert text not in words(text).replace("\\", "")


def test_long_lists_are_cut() -> None:
    assert bullets([str(i) for i in range(25)])[-1] == "- and 5 more"
    assert bullets(["a", "b"]) == ["- a", "- b"]


@pytest.mark.parametrize(("lines", "shown"), [(60, 60), (61, 61), (200, 61)])
def test_long_blocks_are_cut(lines: int, shown: int) -> None:
    first, *inside, last = block("\n".join(map(str, range(lines))))
    assert first == last == "```"
    assert len(inside) == shown
    assert (inside[-1] == "…") == (lines > 60)


@pytest.mark.parametrize(
    ("day", "expected"),
    [
        (date(2026, 3, 1), "2026-03-01 (today)"),
        (date(2026, 2, 28), "2026-02-28 (1 day ago)"),
        (date(2025, 3, 1), "2025-03-01 (365 days ago)"),
        (date(2026, 3, 2), "2026-03-02 (dated ahead)"),
    ],
)
def test_the_age_of_an_evaluation(day: date, expected: str) -> None:
    assert _when(day, date(2026, 3, 1)) == expected


def test_a_summary_is_added_to_and_never_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SUMMARY, raising=False)
    add_to_summary(["nowhere"])
    monkeypatch.setenv(SUMMARY, str(tmp_path / "summary.md"))
    (tmp_path / "summary.md").write_text("before\n")
    add_to_summary(["a", "b"])
    assert (tmp_path / "summary.md").read_text() == "before\na\nb\n\n"
    monkeypatch.setenv(SUMMARY, str(tmp_path))
    with pytest.raises(UsageError, match=f"{SUMMARY}: .* cannot be written"):
        add_to_summary(["a"])
