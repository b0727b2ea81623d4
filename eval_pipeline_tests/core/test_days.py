"""What day it is in the time zone of a project."""

import time
from datetime import UTC, date, datetime

import pytest
from tzlocal import reload_localzone

from eval_pipeline.core.errors import UsageError
from eval_pipeline.core.system.days import TIME_ZONE, day_of, time_zone, today


@pytest.mark.parametrize(
    ("zone", "moment", "day"),
    [
        ("Asia/Tokyo", "2026-03-06T15:30", "2026-03-07"),  # 00:30 there
        ("Asia/Tokyo", "2026-03-06T14:30", "2026-03-06"),
        ("America/New_York", "2026-03-07T04:30", "2026-03-06"),
        ("UTC", "2026-03-06T23:59", "2026-03-06"),
        # Germany goes from UTC+1 to UTC+2 on 29 March 2026 and back on 25 October 2026.
        ("Europe/Berlin", "2026-03-28T22:30", "2026-03-28"),
        ("Europe/Berlin", "2026-03-29T22:30", "2026-03-30"),
        ("Europe/Berlin", "2026-10-24T22:30", "2026-10-25"),
        ("Europe/Berlin", "2026-10-25T22:30", "2026-10-25"),
    ],
)
def test_the_day_of_a_moment(monkeypatch: pytest.MonkeyPatch, zone: str, moment: str, day: str) -> None:
    monkeypatch.setenv(TIME_ZONE, zone)
    seconds = datetime.fromisoformat(moment).replace(tzinfo=UTC).timestamp()
    assert day_of(seconds) == date.fromisoformat(day)


@pytest.mark.parametrize("zone", ["Mars/Olympus", "Asia", "../etc/passwd", "/etc/localtime", "UTC+1"])
def test_what_is_no_zone_is_named(monkeypatch: pytest.MonkeyPatch, zone: str) -> None:
    monkeypatch.setenv(TIME_ZONE, zone)
    with pytest.raises(UsageError, match=r"EVAL_TIMEZONE is '.*', which is not a time zone; expected one such as"):
        time_zone()


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Niue"])  # UTC+14 and UTC-11: never the same day
def test_the_machines_zone_counts_where_none_is_set(monkeypatch: pytest.MonkeyPatch, zone: str) -> None:
    monkeypatch.delenv(TIME_ZONE, raising=False)
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    reload_localzone()
    try:
        assert time_zone().key == zone
        assert today() == date.today()
    finally:
        monkeypatch.delenv("TZ")
        time.tzset()
        reload_localzone()


def test_a_machine_that_names_no_zone_has_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TIME_ZONE, raising=False)
    monkeypatch.setattr("tzlocal.get_localzone_name", lambda: None)
    assert time_zone().key == "UTC"
    monkeypatch.setattr("tzlocal.get_localzone_name", lambda: "EST5EDT,M3.2.0,M11.1.0")
    assert time_zone().key == "UTC"
