"""What ``deploy/`` runs, without containers: two app servers behind a proxy with TLS and login, PostgreSQL, a Ray
that trains, and MongoDB.
"""

from __future__ import annotations

import base64
import datetime
import shutil
import ssl
import subprocess
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pymongo
import pytest
from sqlalchemy import create_engine

from auditor import jobs
from auditor.audits import plan
from auditor.catalog import backups, datasets, db
from auditor.review import decisions
from auditor.work import executors
from benchmarks import scale
from tests import mongodb
from tests.app.conftest import DATASET, NUM_SAMPLES
from tests.browser.conftest import ROOT, WAIT_MS, Server, wait_until
from tests.forker import Forker
from tests.helpers import free_port

DEPLOY = ROOT / "deploy"
NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
NAMES = [f"person{number}" for number in range(8)]


@pytest.fixture
def team(postgres: str, copied_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home whose catalog is in PostgreSQL: the audited one, by way of a backup."""
    backups.backup(tmp_path / "all.tar")
    name = f"team_{uuid.uuid4().hex}"
    administration = create_engine(postgres, isolation_level="AUTOCOMMIT")
    with administration.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    administration.dispose()
    db.close_all()
    monkeypatch.setenv("AUDITOR_DATABASE_URL", postgres.replace("/postgres?", f"/{name}?"))
    monkeypatch.setenv("AUDITOR_HOME", str(tmp_path / "team"))
    backups.restore(tmp_path / "all.tar")
    return tmp_path / "team"


class Proxy:
    """nginx with the template of ``deploy/``, a certificate of its own, and people whose password is their name."""

    def __init__(self, place: Path, servers: list[Server]) -> None:
        place.mkdir()
        self.port, self._log = free_port(), place / "access.log"
        write_certificate(place)
        (place / "users").write_text("".join(f"{name}:{{PLAIN}}{name}\n" for name in NAMES))
        site = (DEPLOY / "nginx.conf.template").read_text(encoding="utf-8")
        values = {
            "APPS": " ".join(f"server 127.0.0.1:{one.port};" for one in servers),
            "LISTEN": f"127.0.0.1:{self.port}",
            "TLS": str(place),
            "USERS": str(place / "users"),
        }
        for name, value in values.items():
            site = site.replace(f"${{{name}}}", value)
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        paths = "".join(f"{kind}_temp_path {place}/{kind};" for kind in kinds)
        (place / "nginx.conf").write_text(
            f"daemon off; pid {place}/pid; error_log {place}/error.log; events {{}}\n"
            f"{'user root;' if Path('/root').is_dir() else ''}\n"
            f"http {{ {paths} log_format who '$remote_user $upstream_addr'; access_log {self._log} who;\n{site}\n}}"
        )
        self.process = subprocess.Popen([str(NGINX), "-c", str(place / "nginx.conf"), "-p", str(place)])
        wait_until(lambda: self.status() == 401, "nginx")

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}"

    def status(self, name: str | None = None) -> int:
        """Of the app's front page for that person."""
        request = urllib.request.Request(self.url)
        if name is not None:
            words = base64.b64encode(f"{name}:{name}".encode()).decode()
            request.add_header("Authorization", f"Basic {words}")
        context = ssl._create_unverified_context()
        try:
            with urllib.request.urlopen(request, context=context, timeout=10) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return 0

    def server_of(self, name: str) -> str:
        """The app server that the person is sent to."""
        assert self.status(name) == 200

        def logged() -> list[str]:
            lines = [line.split() for line in self._log.read_text().splitlines()]
            return [line[1] for line in lines if line[0] == name]

        wait_until(lambda: bool(logged()), "nginx's log")
        return logged()[-1]

    def end(self) -> None:
        self.process.terminate()
        self.process.wait()


def write_certificate(place: Path) -> None:
    """``cert.pem`` and ``key.pem`` for localhost, signed by itself."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    start = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + datetime.timedelta(days=2))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    (place / "cert.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (place / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A Ray with one core, where audits of this process and those that it starts train; its address."""
    pytest.importorskip("ray")
    port = free_port()
    with scale.cluster(1, clients_port=port):
        monkeypatch.setenv(executors.VARIABLE, f"ray://127.0.0.1:{port}")
        yield f"ray://127.0.0.1:{port}"


@pytest.fixture
def fiftyone_uri(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URI of a MongoDB, where FiftyOne's datasets lie."""
    (tmp_path / "mongodb").mkdir()
    with mongodb.running(tmp_path / "mongodb") as uri:
        monkeypatch.setenv("FIFTYONE_DATABASE_URI", uri)
        yield uri


@pytest.fixture
def servers(
    team: Path,
    cluster: str,
    fiftyone_uri: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    forker: Forker,
) -> Iterator[list[Server]]:
    """Two app servers on one home and one database, as behind a proxy."""
    monkeypatch.setenv("AUDITOR_USER_HEADER", "X-Forwarded-User")
    monkeypatch.setenv("AUDITOR_OWNERS", NAMES[0])
    both = [Server(team, forker), Server(team, forker)]
    for one in both:
        one.start()
    yield both
    for one in both:
        one.kill()


@pytest.mark.browser
@pytest.mark.timeout(600)
@pytest.mark.skipif(NGINX is None, reason="nginx is not installed (Debian: apt-get install nginx-light)")
def test_two_servers__behind_the_proxy_one_hears_what_the_other_decided(
    browser: Any,
    servers: list[Server],
    fiftyone_uri: str,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    """And their jobs, as the app starts them, train on Ray and push to MongoDB."""
    proxy = Proxy(tmp_path / "proxy", servers)
    try:
        of = {name: proxy.server_of(name) for name in NAMES}
        ann, ben = NAMES[0], next(name for name in NAMES if of[name] != of[NAMES[0]])
        pages = {}
        for name in (ann, ben):
            context = browser.new_context(
                http_credentials={"username": name, "password": name},
                extra_http_headers={"X-Forwarded-User": "somebody else"},
                ignore_https_errors=True,
            )
            pages[name] = context.new_page()
            pages[name].goto(
                f"{proxy.url}/suspects?dataset={DATASET}&suspects_show=everything", timeout=WAIT_MS
            )
            pages[name].locator("[data-testid=card]").wait_for(timeout=WAIT_MS)
            assert pages[name].get_by_test_id("stSidebar").get_by_text(name, exact=True).count()
        with db.session() as session:
            dataset_id = datasets.get(session, DATASET).id
        first = pages[ann].locator("[data-testid=card]").get_attribute("data-sample")
        pages[ann].keyboard.press("q")
        wait_until(lambda: decisions.outcomes(dataset_id), "Ann's verdict", pages[ann])
        pages[ben].goto(f"{proxy.url}/suspects?dataset={DATASET}&suspects_search=%23{first}", timeout=WAIT_MS)
        pages[ben].locator(f"[data-testid=card][data-sample='{first}']").wait_for(timeout=WAIT_MS)
        pages[ben].keyboard.press("e")
        began = time.monotonic()
        pages[ann].get_by_text(f"{ben} decided otherwise than you on sample {first}").wait_for(
            timeout=WAIT_MS
        )
        record_property("heard_after_s", round(time.monotonic() - began, 1))  # --junit-xml keeps it
        words = {row.reviewer: row.decision for row in decisions.outcomes(dataset_id).values()}
        assert words == {ben: "exclude"}
        options = {"cross_entropy": {"epochs": 1, "network": "mlp", "views": 1}}
        audit_id = plan.plan_audit(
            DATASET, ["cross_entropy"], options=options, map_method="pca", device="cpu"
        )
        for job_id in (plan.start_audit(audit_id), jobs.start("push", DATASET, dataset_id=dataset_id)):
            wait_until(lambda job_id=job_id: jobs.overview(job_id).is_over, f"job {job_id}")
            assert jobs.overview(job_id).state == "finished", jobs.overview(job_id).error
        with pymongo.MongoClient(fiftyone_uri) as client:
            pushed = client["fiftyone"]["datasets"].find_one({"name": DATASET})
            assert pushed is not None
            assert client["fiftyone"][pushed["sample_collection_name"]].count_documents({}) == NUM_SAMPLES
    finally:
        proxy.end()
