"""`deploy/`: certificates with real services, files by their schemas; there is no Docker and no Kubernetes here."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml

from benchmarks.growth.check import QUIET
from eval_pipeline.core.errors import UsageError
from eval_pipeline.workspace.shards.cluster import ADDRESS
from eval_pipeline_plugins.dask.address import CERTIFICATES, cluster_address
from eval_pipeline_plugins.dask.cluster import dask_cluster
from eval_pipeline_tests.plugins.dask.dask_services import Services
from eval_pipeline_tests.plugins.dask.work import sleep
from eval_pipeline_tests.servers import serving_over_tls
from eval_pipeline_tests.support import command as run_here

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
OBJECTS: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.objects.yaml").read_text())
STORE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.store.yaml").read_text())
KUBERNETES = {path.stem: path for path in sorted((DEPLOY / "kubernetes").glob("*.yaml"))}
OF_FILE: dict[str, list[dict[str, Any]]] = {n: list(yaml.safe_load_all(p.read_text())) for n, p in KUBERNETES.items()}
MANIFESTS = OF_FILE["eval-pipeline"]
MADE = ("postgres", "scheduler", "worker", "run")
OF_OTHERS = ("minio/minio", "minio/mc")
"""Images whose commands cannot be looked up here."""

needs_openssl = pytest.mark.skipif(not os.environ.get("CI") and shutil.which("openssl") is None, reason="no openssl")


def test_docs_and_image_keep_idle_workers_quiet_by_settings_that_dask_knows() -> None:
    config = pytest.importorskip("dask.config", reason="the extra `cluster` is not installed")
    pytest.importorskip("distributed")
    for text in ((ROOT / "docs" / "scale.md").read_text(), (DEPLOY / "Dockerfile").read_text()):
        assert [name for name, value in QUIET.items() if f"{name}={value}" not in text] == []
    for name in QUIET:
        assert config.get(name.removeprefix("DASK_").lower().replace("__", "."), None) is not None, name


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("deploy") / "certificates"
    subprocess.run([DEPLOY / "certificates.sh", folder], check=True)
    return folder


def pods(manifests: list[dict[str, Any]] = MANIFESTS) -> Iterator[tuple[str, dict[str, Any]]]:
    for manifest in manifests:
        if "template" in manifest["spec"]:
            yield manifest["metadata"]["name"], manifest["spec"]["template"]["spec"]


def commands() -> dict[str, Sequence[str]]:
    """What the services run, in all files."""
    files = {"compose": COMPOSE, "compose.objects": OBJECTS, "compose.store": STORE}
    services = {f"{file} {name}": one for file, found in files.items() for name, one in found["services"].items()}
    ours = {name: one for name, one in services.items() if one["image"].partition(":")[0] not in OF_OTHERS}
    found = {name: shlex.split(one["command"]) for name, one in ours.items() if "command" in one}
    all_pods = ((f"{file} {name}", pod) for file, manifests in OF_FILE.items() for name, pod in pods(manifests))
    return found | {name: pod["containers"][0]["args"] for name, pod in all_pods}


@needs_openssl
def test_certificates_are_closed_to_others_and_kept(certificates: Path) -> None:
    assert {path.name for path in certificates.glob("*.crt")} == {"ca.crt", *(f"{name}.crt" for name in MADE)}
    assert {path.stat().st_mode & 0o77 for path in certificates.iterdir()} == {0}
    before = {path: path.read_bytes() for path in certificates.glob("*.crt")}
    subprocess.run([DEPLOY / "certificates.sh", certificates, *MADE, "another"], check=True)
    assert {path: path.read_bytes() for path in before} == before
    for name in (*MADE, "another"):
        verify = ["openssl", "verify", "-CAfile", "ca.crt", "-verify_hostname", name, f"{name}.crt"]
        assert subprocess.run(verify, cwd=certificates, capture_output=True, check=False).returncode == 0, name


@needs_openssl
@pytest.mark.services("dask")
def test_scheduler_and_workers_talk_with_these_certificates_only(
    certificates: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the options of `compose.yaml`, and the addresses of a test."""
    services = Services(tmp_path, {name: tls_options(name, certificates) for name in ("scheduler", "worker")})
    try:
        services.worker()
        assert services.url.startswith("tls://")
        monkeypatch.setenv(ADDRESS, services.url)
        for variable, name in zip(CERTIFICATES.values(), ("ca.crt", "run.crt", "run.key"), strict=True):
            monkeypatch.setenv(variable, str(certificates / name))
        address = cluster_address()
        with dask_cluster(address) as cluster:
            (told,) = cluster.map(sleep, [{"name": "one", "notes": str(tmp_path), "seconds": 0.0}])
            assert told["name"] == "one"
        stranger = tmp_path / "stranger"
        subprocess.run([DEPLOY / "certificates.sh", stranger, "run"], check=True)
        monkeypatch.setenv(CERTIFICATES["certificate"], str(stranger / "run.crt"))
        monkeypatch.setenv(CERTIFICATES["key"], str(stranger / "run.key"))
        monkeypatch.setattr("eval_pipeline_plugins.dask.cluster._CONNECT_S", 2.0)
        address = cluster_address()
        with pytest.raises(UsageError, match="no scheduler answers"), dask_cluster(address):
            pass
    finally:
        services.end()


def tls_options(service: str, certificates: Path) -> list[str]:
    """The options for certificates that a service has in `compose.yaml`."""
    files = {name: str(DEPLOY / secret["file"]) for name, secret in COMPOSE["secrets"].items()}
    words = shlex.split(COMPOSE["services"][service]["command"])
    options = []
    for option, value in pairwise(words):
        if option.startswith("--tls") or option == "--protocol":
            mounted = Path(files[Path(value).name]).name if "/" in value else ""
            options += [option, str(certificates / mounted) if mounted else value]
    return options


@needs_openssl
@pytest.mark.services("postgres")
def test_postgres_is_reached_by_its_name_and_authority_only(certificates: Path, tmp_path: Path) -> None:
    with serving_over_tls(certificates / "postgres.crt", certificates / "postgres.key") as port:
        address = f"host=localhost hostaddr=127.0.0.1 port={port} user=root dbname=postgres sslmode=verify-full"
        with psycopg.connect(f"{address} sslrootcert={certificates / 'ca.crt'}") as session:
            assert session.execute("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()").fetchone() == (True,)
        subprocess.run([DEPLOY / "certificates.sh", tmp_path / "other", "postgres"], check=True)
        with pytest.raises(psycopg.OperationalError, match="certificate verify failed"):
            psycopg.connect(f"{address} sslrootcert={tmp_path / 'other' / 'ca.crt'}")
        with pytest.raises(psycopg.OperationalError, match="does not match host name"):
            psycopg.connect(f"{address} sslrootcert={certificates / 'ca.crt'}".replace("localhost", "elsewhere"))


def test_compose_fits_its_schema_and_itself() -> None:
    files = [DEPLOY / name for name in ("compose.yaml", "compose.objects.yaml", "compose.store.yaml")]
    check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    found = subprocess.run([*check, *files], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout
    made = {f"{name}.{kind}" for name in MADE for kind in ("crt", "key")} | {"ca.crt", "postgres.password"}
    assert {Path(secret["file"]).name for secret in COMPOSE["secrets"].values()} == made
    made |= {"objects.crt", "objects.key"}  # asked for in the commands at the top of `compose.store.yaml`
    for compose in (COMPOSE, OBJECTS, STORE):
        every = [one for service in compose["services"].values() for one in service["secrets"]]
        assert {one if isinstance(one, str) else one["source"] for one in every} == compose["secrets"].keys()
        assert {Path(secret["file"]).name for secret in compose["secrets"].values()} <= made
        for service in compose["services"].values():
            mounted = set(re.findall(r"/run/secrets/(\w+)", yaml.safe_dump(service)))
            assert mounted == {one for one in service["secrets"] if isinstance(one, str)}
            assert set(service["networks"]) <= compose["networks"].keys()


def test_services_are_the_same_with_and_without_a_bucket() -> None:
    assert OBJECTS["services"]["postgres"] == STORE["services"]["postgres"] == COMPOSE["services"]["postgres"]
    assert OBJECTS["services"]["ui"]["entrypoint"] == COMPOSE["services"]["ui"]["entrypoint"]
    assert STORE["services"]["scheduler"] == COMPOSE["services"]["scheduler"]
    words = [sorted(shlex.split(found["services"]["worker"]["command"])) for found in (STORE, COMPOSE)]
    assert words[0] == words[1]
    ours = STORE["services"]["ui"]["environment"]
    assert COMPOSE["services"]["ui"]["environment"].items() <= ours.items()
    assert STORE["services"]["worker"]["environment"].items() - {("SSL_CERT_FILE", "/run/secrets/ca")} <= ours.items()


def test_what_services_of_dask_tell_by_http_stays_in_their_container() -> None:
    """`--no-dashboard` leaves the server on, which listens for everybody and knows no certificates."""
    of_dask = {place: command for place, command in commands().items() if command[0] == "dask"}
    assert len(of_dask) == 6
    for place, command in of_dask.items():
        assert command[command.index("--dashboard-address") + 1] == "127.0.0.1:0", place


@pytest.mark.soak
def test_manifests_fit_the_schemas_of_kubernetes() -> None:
    tool = [ROOT / ".venv/bin/uv", "tool", "run", "--from", "kubernetes-validate==1.37.0", "kubernetes-validate"]
    for file in KUBERNETES.values():
        found = subprocess.run([*tool, "--strict", file], capture_output=True, text=True, check=False)
        assert found.returncode == 0, found.stderr


def test_hosts_with_a_bucket_share_no_volume() -> None:
    modes = {name: {m for one in found for m in one["spec"].get("accessModes", [])} for name, found in OF_FILE.items()}
    assert modes == {"eval-pipeline": {"ReadWriteMany"}, "eval-pipeline-objects": {"ReadWriteOnce"}}
    shared = ("postgres",)
    with_bucket = dict(pods(OF_FILE["eval-pipeline-objects"]))
    assert {name: with_bucket[name] for name in shared} == {name: dict(pods())[name] for name in shared}


@pytest.mark.parametrize("manifests", OF_FILE.values(), ids=OF_FILE)
def test_manifests_name_what_there_is(manifests: list[dict[str, Any]]) -> None:
    names = {(one["kind"], one["metadata"]["name"]) for one in manifests}
    claims = {name for kind, name in names if kind == "PersistentVolumeClaim"}
    for name, pod in pods(manifests):
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        mine = {mount["name"] for c in pod["containers"] + pod.get("initContainers", []) for mount in c["volumeMounts"]}
        assert mine - {"database"} == volumes.keys() - {"database"}, name
        assert {
            v["persistentVolumeClaim"]["claimName"] for v in volumes.values() if "persistentVolumeClaim" in v
        } <= claims
        assert not pod["automountServiceAccountToken"], name
    for manifest in manifests:
        chosen = manifest["spec"].get("selector") or manifest["spec"].get("podSelector") or {}
        app = chosen.get("matchLabels", chosen).get("app")
        assert manifest["kind"] == "PersistentVolumeClaim" or app in {name for name, _ in pods(manifests)}, manifest[
            "metadata"
        ]


def test_workers_have_neither_keys_nor_database_nor_a_way_out() -> None:
    for compose in (COMPOSE, STORE):
        worker = compose["services"]["worker"]
        assert "env_file" not in worker
        assert not any(
            name.startswith("EVAL_DATABASE") or "KEY" in name
            for name in worker.get("environment", ())
            if not name.startswith("AWS_")
        )
        assert all(compose["networks"][name]["internal"] for name in worker["networks"])
    pod = dict(pods())["worker"]["containers"][0]
    assert {entry["name"] for entry in pod["env"]} == {"EVAL_HOME", "EVAL_DATA"}
    assert "envFrom" not in pod
    policy = next(m for m in MANIFESTS if m["kind"] == "NetworkPolicy" and m["metadata"]["name"] == "worker")
    assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]


def test_what_is_run_and_set_exists() -> None:
    documented = set(
        re.findall(r"`(EVAL_\w+)", (ROOT / "docs/operations.md").read_text() + (ROOT / "docs/scale.md").read_text())
    )
    for file in (*DEPLOY.glob("compose*.yaml"), *KUBERNETES.values(), DEPLOY / "Dockerfile"):
        assert set(re.findall(r"\bEVAL_\w+", file.read_text())) <= documented, file
    for place, command in commands().items():
        options = [word for word in command if word.startswith("--")]
        if command[0] in ("eval-pipeline", "dask"):
            said = helped(*command[:2])
            assert [option for option in options if option not in said] == [], place


@cache
def helped(program: str, command: str) -> str:
    if program == "eval-pipeline":
        return run_here(command, "--help").out
    start = f"import sys; sys.argv = ['x', '--help']; from distributed.cli.dask_{command} import main; main()"
    return subprocess.run([sys.executable, "-c", start], capture_output=True, text=True, check=False).stdout


def test_the_image_has_the_extras_and_the_uv_of_the_project() -> None:
    image = (DEPLOY / "Dockerfile").read_text()
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    of_tracks = {"charts", "http", "openai", "pandas", "sdmx", "sql"}
    assert set(re.findall(r"--extra (\S+)", image)) == {"cluster", "objects", "postgres"} | of_tracks <= extras.keys()
    (version,) = re.findall(r"uv==(\S+)", image)
    assert f"UV_VERSION := {version}" in (ROOT / "Makefile").read_text()


def test_the_image_can_be_built_from_what_it_copies(tmp_path: Path) -> None:
    """At least the package, from files that `.dockerignore` leaves there."""
    sent = {line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] == "!"}
    copied = re.findall(r"^COPY (.+) (\S+)$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)
    for names, target in copied:
        assert set(names.split()) <= sent
        for name in names.split():
            place = tmp_path / target / (name if target == "./" else "")
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, place, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, place)
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel"]
    built = subprocess.run(build, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as found:
        assert "eval_pipeline/operations/project/samples/model_versions.yaml" in found.namelist()
