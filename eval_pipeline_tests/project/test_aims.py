"""The table of what is aimed at says what is missed."""

from benchmarks.aims import Figure, row


def test_missed_aims_and_what_was_not_measured_are_said() -> None:
    figures = [
        Figure("a run", 4.5, 4.5, "CPU s", "0.3 ms a turn"),
        Figure("memory", 412.3, 300, "MiB"),
        Figure("a turn", None, 1.0, "times", "no network"),
    ]
    assert list(map(row, figures)) == [
        "| a run | 4.5 CPU s | 4.5 CPU s | 1.00 | reached; 0.3 ms a turn |",
        "| memory | 412 MiB | 300 MiB | 1.37 | **missed** |",
        "| a turn | not measured | 1 times |  | no network |",
    ]
