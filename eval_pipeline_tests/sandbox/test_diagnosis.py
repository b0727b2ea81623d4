"""What `doctor` says of the sandbox: the tier that runs, and what it takes to get the best one."""

from pathlib import Path

import pytest

from eval_pipeline.sandbox import diagnosis
from eval_pipeline.sandbox.diagnosis import diagnose, remedy
from eval_pipeline.sandbox.tiers import TIERS, UNSAFE_TIER, Tier

NO_NAMESPACE = "bwrap (system): bwrap: No permissions to create new namespace"
ABSENT = ["bwrap (system): bubblewrap is not installed", "bwrap (wheel): bubblewrap is not installed"]


def test_the_first_tier_that_runs_a_snippet_is_named_with_why_the_others_do_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broken = Tier("bwrap", "bwrap (broken)", lambda: "bubblewrap is not installed", UNSAFE_TIER.launch)
    monkeypatch.setattr(diagnosis, "allowed_tiers", lambda: (broken, UNSAFE_TIER))
    found = diagnose()
    assert (found.title, found.best) == ("unsafe", False)
    assert found.reasons == ("bwrap (broken): bubblewrap is not installed",)
    assert "apt install bubblewrap" in found.remedy


def test_the_best_tier_needs_no_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnosis, "allowed_tiers", lambda: TIERS)
    found = diagnose()
    if found.title is None or not found.title.startswith("bwrap"):
        pytest.skip(str(found.reasons))
    assert (found.best, found.remedy) == (True, "")


@pytest.mark.parametrize(
    ("setting", "content", "words"),
    [
        ("kernel/apparmor_restrict_unprivileged_userns", "1\n", "apparmor_restrict_unprivileged_userns=0"),
        ("kernel/apparmor_restrict_unprivileged_userns", "0\n", "let this user make user namespaces"),
        ("kernel/unprivileged_userns_clone", "0\n", "unprivileged_userns_clone=1"),
        ("user/max_user_namespaces", "0\n", "max_user_namespaces=10000"),
        ("user/max_user_namespaces", "96551\n", "let this user make user namespaces"),
    ],
)
def test_the_setting_that_forbids_namespaces_is_named(tmp_path: Path, setting: str, content: str, words: str) -> None:
    (tmp_path / setting).parent.mkdir(parents=True)
    (tmp_path / setting).write_text(content)
    assert words in remedy("sandlock", [NO_NAMESPACE, ABSENT[1]], tmp_path, tmp_path)


def test_a_container_is_told_how_to_be_started(tmp_path: Path) -> None:
    (tmp_path / ".dockerenv").touch()
    assert "--security-opt" in remedy(None, [NO_NAMESPACE], tmp_path, tmp_path)


def test_without_bubblewrap_it_is_to_be_installed(tmp_path: Path) -> None:
    assert "apt install bubblewrap" in remedy("sandlock", ABSENT, tmp_path, tmp_path)


def test_a_lesser_tier_by_choice_is_not_the_machine_s_fault(tmp_path: Path) -> None:
    assert remedy("unsafe", [], tmp_path, tmp_path) == "unset EVAL_SANDBOX"
