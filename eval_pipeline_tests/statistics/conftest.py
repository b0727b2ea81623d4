"""Keeps the long simulations out of ordinary runs: `pytest -m soak` runs them."""

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "soak: minutes of simulation, run with -m soak")


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("soak") and "soak" not in str(item.config.getoption("markexpr")):
        pytest.skip("long simulation; run with -m soak")
