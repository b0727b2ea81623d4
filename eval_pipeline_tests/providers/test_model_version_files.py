import stat
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from eval_pipeline.core.errors import InputError, Problem
from eval_pipeline.core.model_versions import ModelVersion, Predictions, Price
from eval_pipeline.providers.imported_versions import save_imported
from eval_pipeline.providers.model_versions import load_model_versions
from eval_pipeline.tracks.registry import own_tracks

SHIPPED = Path(__file__).parents[2] / "data" / "model_versions.yaml"


def load(tmp_path: Path, text: str) -> dict[str, ModelVersion]:
    path = tmp_path / "model_versions.yaml"
    path.write_text(text, "utf-8")
    return load_model_versions([path])


def problems(tmp_path: Path, text: str) -> list[tuple[int | None, str, str]]:
    with pytest.raises(InputError) as caught:
        load(tmp_path, text)
    assert all(problem.file == str(tmp_path / "model_versions.yaml") for problem in caught.value.problems)
    return [(problem.line, problem.field, problem.message) for problem in caught.value.problems]


def test_the_shipped_file() -> None:
    versions = load_model_versions([SHIPPED])
    assert list(versions) == ["simulated-strong", "simulated-weak", "smollm2-135m", "oracle", "null"]
    assert [name for name, version in versions.items() if version.active] == ["simulated-strong", "simulated-weak"]
    for name, rate in [("simulated-strong", 0.10), ("simulated-weak", 0.35)]:
        tracks = versions[name].options["tracks"]
        assert {"finqa", "pandas", "sdmx", "sql", "text"} <= set(tracks) <= set(own_tracks())
        for settings in tracks.values():
            assert sum(settings["rates"].values()) == pytest.approx(rate, rel=0.15)
        assert versions[name].description.startswith("Simulated, not a model.")
    assert versions["smollm2-135m"].prompt == {"finqa": "calculation-1"}


def test_entries_keep_their_order_and_values(tmp_path: Path) -> None:
    versions = load(
        tmp_path,
        """
model_versions:
  - name: b
    provider: simulated
    options: {seed: 3, rates: {sign_error: 0.1}}
    price: {input: 1, output: 2.5, since: 2026-01-01}
  - {name: a, provider: null, model: 4.5}
  - name: 2026-01-01
    provider: oracle
""",
    )
    assert list(versions) == ["b", "a", "2026-01-01"]
    assert versions["b"].options == {"seed": 3, "rates": {"sign_error": 0.1}}
    assert versions["a"].provider == "null"  # not YAML's null
    assert versions["a"].model == "4.5"


def test_every_mistake_is_told_with_its_place(tmp_path: Path) -> None:
    told = problems(
        tmp_path,
        """model_versions:
  - name: one
    provider: gpt
    tempature: 1
  - name: two
    provider: oracle
    price:
      input: 1
      output: -2
      curency: usd
  - provider: oracle
  - name: four
    provider: simulated
    options:
      seed: 1
      rates: {sign_error: 3}
      slop: 1
  - name: five
    provider: local
    history: theirs
  - name: six
    provider: local
  - just a text
""",
    )
    places = [(line, field) for line, field, _ in told]
    assert places == [
        (3, "provider"), (4, "tempature"), (9, "price.output"), (10, "price.curency"), (11, "name"),
        (16, "options.rates"), (17, "options.slop"), (20, "history"), (21, "concurrency"), (23, ""),
    ]  # fmt: skip
    messages = [message for _, _, message in told]
    assert messages[0] == (
        "unknown provider 'gpt'; allowed: recorded, simulated, oracle, null, anthropic, openai, http, command, local "
        "(model version 'one')"
    )
    assert messages[1].startswith("unknown field; allowed: name, provider, model, ")
    assert messages[2] == "expected a number of at least 0, found -2 (model version 'two')"
    assert messages[3].startswith("unknown field; allowed: input, output, cache_read, ")
    assert messages[5] == "the rate of 'sign_error' must be in 0..1 (model version 'four')"
    assert messages[6].startswith("unknown field; allowed: rates, slope, seed, tracks, ")
    assert "'gold' or 'own'" in messages[7]


def test_nights_on_a_part(tmp_path: Path) -> None:
    head = "model_versions:\n  - name: a\n    provider: oracle\n"
    found = load(tmp_path, head + "    nightly: {part: 30%, full: monday}\n")["a"]
    assert (found.nightly.share, found.nightly.asks_part(date(2026, 3, 1))) == (0.3, True)
    assert not found.nightly.asks_part(date(2026, 3, 2)), "a Monday"
    plain = load(tmp_path, head)["a"]
    assert (plain.nightly, found.identity_hash()) == (None, plain.identity_hash())
    for entry, field, said in (
        ("{part: 0%}", "nightly.part", "expected a part of the cases from 1% to 99%, such as 30%, found '0%'"),
        ("{part: 100%}", "nightly.part", "found '100%'"),
        ("{part: 0.3}", "nightly.part", "expected a text, found 0.3; write it in quotes"),
        ("{part: 30%, full: sundays}", "nightly.full", "'sunday'"),
        ("{part: 30%, fully: sunday}", "nightly.fully", "unknown field; allowed: part, full"),
        ("{full: sunday}", "nightly.part", "is missing"),
        ("30%", "nightly", "expected"),
        ("{part: 30%}\n    samples_per_turn: 3", "nightly", "asks each turn once, but samples_per_turn is 3"),
    ):
        (problem,) = problems(tmp_path, f"{head}    nightly: {entry}\n")
        assert (problem[1], said in problem[2]) == (field, True), problem


def test_names_are_unique_within_and_across_files(tmp_path: Path) -> None:
    entry = "model_versions:\n  - {name: a, provider: oracle}\n"
    first, second = tmp_path / "first.yaml", tmp_path / "second.yaml"
    first.write_text(entry + "  - {name: a, provider: oracle}\n")
    second.write_text(entry)
    with pytest.raises(InputError) as caught:
        load_model_versions([first, second])
    within, across = caught.value.problems
    assert str(within).startswith(f"{first}:3: name: model version 'a' is already defined in {first}:2")
    assert str(across).startswith(f"{second}:2: name: model version 'a' is already defined in {first}:2")


def test_problems_of_all_files_are_told_at_once(tmp_path: Path) -> None:
    files = [tmp_path / "a.yaml", tmp_path / "b.yaml"]
    for file in files:
        file.write_text("model_versions: 3")
    with pytest.raises(InputError) as caught:
        load_model_versions(files)
    assert [problem.file for problem in caught.value.problems] == [str(file) for file in files]


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ("model_versions:\n  - name: [\n", 3, "not valid YAML"),
        ("model_versions:\n\t- a", 2, "not valid YAML"),
        ("model_versions: []\n--- \nanother: document", 2, "not valid YAML"),
        ("- name: a", 1, "expected nothing but a list under the key 'model_versions'"),
        ("model_versions: {}\n", 1, "expected nothing but a list"),
        ("model_versions: []\nother: 1\n", 1, "expected nothing but a list"),
        ("model_versions:\n  - !!python/object/apply:os.system ['true']\n", 2, "not valid YAML"),
        (
            "model_versions:\n  - name: a\n    provider: oracle\n    name: b\n",
            4,
            "'name' is given twice, first in line 2",
        ),
        ("model_versions:\n  - {name: a, provider: local, price: {since: 2026-13-01}}", None, "not valid YAML"),
        ("model_versions:\n  - {name: , provider: oracle}", 2, "expected a text, found nothing"),
    ],
)
def test_malformed_files(tmp_path: Path, text: str, line: int | None, told: str) -> None:
    found = problems(tmp_path, text)
    assert found[0][0] == line
    assert told in found[0][2]


def test_a_missing_or_empty_file_has_none(tmp_path: Path) -> None:
    assert load_model_versions([tmp_path / "absent.yaml"]) == {}
    assert load(tmp_path, "") == {}
    assert load(tmp_path, "# nothing\n") == {}


@pytest.mark.parametrize("contents", [None, b"\xff\xfe\xff"])
def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path, contents: bytes | None) -> None:
    path = tmp_path / "model_versions.yaml"
    path.mkdir() if contents is None else path.write_bytes(contents)
    with pytest.raises(InputError, match="cannot read the model versions"):
        load_model_versions([path])


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
fields = st.sampled_from("name provider model price options predictions max_tokens typo active".split())
entries = st.dictionaries(fields, values | st.sampled_from(["oracle", "local", "simulated", "recorded"]), max_size=5)


@given(
    st.one_of(
        st.text(max_size=60),
        st.lists(entries | values, max_size=3).map(lambda one: yaml.safe_dump({"model_versions": one})),
    )
)
def test_whatever_is_in_the_file_only_input_errors_come_out(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    found: tuple[Problem, ...] = ()
    try:
        load_model_versions([path])
    except InputError as error:
        found = error.problems
    assert all(problem.message and (problem.line is None or problem.line >= 1) for problem in found)


def recorded(name: str, **more: Any) -> ModelVersion:
    files = {"suite": Predictions(file=f"{name}.jsonl", content_hash="abc")}
    return ModelVersion(name=name, provider="recorded", model="claude-sonnet-4-6", predictions=files, **more)


def test_imported_entries_are_added_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "home" / "model_versions.yaml"
    first, second = recorded("a", max_recovery_attempts=0), recorded("b", price=Price(input=1, output=2))
    save_imported(path, first)
    save_imported(path, second)
    assert load_model_versions([path]) == {"a": first, "b": second}
    replaced = recorded("a", description="é: again")
    save_imported(path, replaced)
    assert load_model_versions([path]) == {"a": replaced, "b": second}
    assert [file.name for file in path.parent.iterdir()] == ["model_versions.yaml"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_an_import_into_a_broken_file_leaves_it_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "model_versions.yaml"
    path.write_text("model_versions: 3")
    with pytest.raises(InputError):
        save_imported(path, recorded("a"))
    assert path.read_text() == "model_versions: 3"


def test_imports_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "model_versions.yaml"
    code = (
        "import sys; from pathlib import Path; from eval_pipeline.core.model_versions import ModelVersion\n"
        "from eval_pipeline.providers.imported_versions import save_imported\n"
        "for n in range(5): save_imported(Path(sys.argv[1]), ModelVersion(name=f'{sys.argv[2]}{n}', provider='oracle'))"
    )
    children = [subprocess.Popen([sys.executable, "-c", code, str(path), name]) for name in "ab"]
    assert [child.wait(30) for child in children] == [0, 0]
    assert len(load_model_versions([path])) == 10


def test_batches_need_a_provider_that_has_them_and_dollar_limits_a_price(tmp_path: Path) -> None:
    told = problems(
        tmp_path,
        """model_versions:
  - {name: one, provider: oracle, batch: true}
  - name: two
    provider: anthropic
    model: claude-that-nobody-knows
    max_cost_usd: 3
  - {name: three, provider: anthropic, model: claude-sonnet-4-5, max_cost_usd: 3, batch: true}
  - {name: four, provider: oracle, max_tokens_total: 3}
""",
    )
    assert told == [
        (2, "batch", "the provider 'oracle' has no batches; leave it out (model version 'one')"),
        (
            6,
            "max_cost_usd",
            "the price of claude-that-nobody-knows is not known; give `price`, or leave it out and set "
            "max_tokens_total (model version 'two')",
        ),
    ]


def test_a_budget_of_an_application_needs_what_tells_of_its_spending(tmp_path: Path) -> None:
    told = problems(
        tmp_path,
        """model_versions:
  - name: silent
    provider: http
    options: {base_url: "http://127.0.0.1:1", input_tokens_path: $.in}
    max_cost_usd: 3
    max_tokens_total: 3
  - name: dollars
    provider: http
    options: {base_url: "http://127.0.0.1:1", cost_path: $.usd}
    max_cost_usd: 3
  - name: tokens
    provider: http
    options: {base_url: "http://127.0.0.1:1", input_tokens_path: $.in, output_tokens_path: $.out}
    max_cost_usd: 3
    max_tokens_total: 3
    priced_as: claude-sonnet-4-5
""",
    )
    unknown = "else nothing is known of what the application spends (model version 'silent')"
    assert told == [
        (5, "max_cost_usd", f"needs options.cost_path, or both paths of tokens and a price: {unknown}"),
        (6, "max_tokens_total", f"needs options.input_tokens_path and options.output_tokens_path: {unknown}"),
    ]
