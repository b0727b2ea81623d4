from pathlib import Path

import pytest

from eval_pipeline.core.errors import UsageError
from eval_pipeline.state.place import DATABASE_URL
from eval_pipeline_plugins.postgres.address import database_address

SECRET = "s3cr%40t"


@pytest.fixture(autouse=True)
def no_detours(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PGHOSTADDR", "PGSERVICE"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (f"postgresql://me:{SECRET}@127.0.0.1:5432/evals", "postgresql://me@127.0.0.1:5432/evals"),
        (f"postgresql://me:{SECRET}@localhost/evals?sslmode=disable", "postgresql://me@localhost/evals"),
        (f"postgresql://me:{SECRET}@[::1]/evals", "postgresql://me@[::1]/evals"),
        (f"postgresql://me@/evals?host=/run/postgresql&password={SECRET}", "postgresql://me@/run/postgresql/evals"),
    ],
)
def test_a_server_on_this_machine_is_accepted_and_its_password_not_shown(
    url: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DATABASE_URL, url)
    address = database_address()
    assert str(address) == shown
    assert "s3cr" not in repr(address)
    assert address.without_password(f"no {address.password}, no s3cr@t") == "no ***, no ***"


def test_with_verification_another_machine_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "root.crt"
    monkeypatch.setenv(DATABASE_URL, f"postgresql://me@db.example.org/evals?sslmode=verify-full&sslrootcert={root}")
    with pytest.raises(UsageError, match="there is no file"):
        database_address()
    root.write_text("a certificate")
    assert database_address() is not None


BEYOND = "beyond this machine it needs sslmode=verify-full and sslrootcert"


@pytest.mark.parametrize(
    ("rest", "told"),
    [
        (f"me:{SECRET}@db.example.org/evals", BEYOND),
        (f"me:{SECRET}@db.example.org/evals?sslmode=require", BEYOND),
        (f"me:{SECRET}@db.example.org/evals?sslmode=verify-full", BEYOND),
        (f"me:{SECRET}@db.example.org/evals?sslmode=verify-ca&sslrootcert=system", BEYOND),
        (f"me:{SECRET}@10.0.0.1/evals", BEYOND),
        (f"me:{SECRET}@127.0.0.1/evals?hostaddr=10.0.0.1", BEYOND),
        (f"me:{SECRET}@127.0.0.1/evals?host=db.example.org", BEYOND),
        (f"me:{SECRET}@/evals?host=db.example.org", BEYOND),
        (f"me:{SECRET}@localhost.example.org/evals", BEYOND),
        ("me:s3cr%zz@127.0.0.1:port/evals", "is malformed"),
        ("me:s3cret@127.0.0.1/evals#x?host=db.example.org", "is malformed"),
        ("me:s3cret@127.0.0.1/evals?application_name=a#&host=db.example.org", "is malformed"),
        ("me:s3cret@127.0.0.1/evals?host=", "one server"),
        ("me:s3cret@127.0.0.1/evals?hostaddr=", "one server"),
        ("me:s3cret@127.0.0.1/", "has to name a server and a database"),
        ("me:s3cret@/evals", "has to name a server and a database"),
        ("me:s3cret@127.0.0.1,10.0.0.1/evals", "one server"),
        ("me:s3cret@127.0.0.1/evals?service=other", "one server"),
        ("me:s3cret@127.0.0.1/evals?sslmode=disable&sslmode=verify-full", "a parameter twice"),
    ],
)
def test_what_is_refused_is_told_without_the_password(rest: str, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DATABASE_URL, f"postgresql://{rest}")
    with pytest.raises(UsageError, match=told) as found:
        database_address()
    assert "s3cr" not in str(found.value)


@pytest.mark.parametrize("name", ["PGHOSTADDR", "PGSERVICE"])
def test_variables_that_lead_elsewhere_are_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DATABASE_URL, "postgresql://me@127.0.0.1/evals")
    monkeypatch.setenv(name, "10.0.0.1")
    with pytest.raises(UsageError, match=f"{name} would lead to another server"):
        database_address()
