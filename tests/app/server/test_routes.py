"""The HTTP routes: closed without the secret, and what they answer."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import io
import os
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from PIL import Image
from starlette.applications import Starlette

from app.server import bench
from app.server.routes import MAX_BODY_BYTES, ROUTES
from app.session import access, sign_in
from app.session.access import OWNER, READER, REVIEWER
from auditor.catalog import db, jobs
from auditor.ground.errors import AuditorError
from auditor.ground.settings import settings
from auditor.importing import imports
from auditor.results import arrays
from auditor.review import blind, drawing, verifying
from auditor.review.decisions import decide
from tests.helpers import WAIT_S

pytestmark = pytest.mark.usefixtures("copied_home")
DATASET = "tiny [digits](x)"


class Client:
    """Sends requests to the routes, with headers of its own."""

    def __init__(self, headers: dict[str, str]) -> None:
        self.headers = headers

    def send(self, method: str, path: str, **values: Any) -> httpx.Response:
        async def answer() -> httpx.Response:
            transport = httpx.ASGITransport(app=Starlette(routes=ROUTES))
            async with httpx.AsyncClient(transport=transport, base_url="http://app") as client:
                return await client.request(method, f"/bench/{path}", headers=self.headers, **values)

        return asyncio.run(answer())

    def get(self, path: str, **values: Any) -> httpx.Response:
        return self.send("GET", path, **values)

    def post(self, path: str, body: dict[str, Any]) -> httpx.Response:
        return self.send("POST", path, json=body)


STRANGER = Client({})


@pytest.fixture
def client() -> Client:
    return Client({"X-Auditor-Token": access.token()})


@pytest.mark.parametrize(
    "path",
    [
        "queue",
        "queue-size",
        "card",
        "verdicts",
        "undo",
        "newest",
        "progress",
        "lease",
        "blind",
        "blind-undo",
    ],
)
def test_post__refused_without_the_secret(path: str) -> None:
    answer = STRANGER.post(path, {"audit": 1, "verdicts": []})
    assert answer.status_code == 403
    assert "another session" in answer.json()["error"]


@pytest.mark.parametrize("path", ["image/1/0", "map/1/cross_entropy", "image/1/0?t=wrong"])
def test_get__refused_without_the_secret(path: str) -> None:
    assert STRANGER.get(path).status_code == 403


@pytest.mark.parametrize("accepted", ["gzip", "identity"])
def test_map__is_packed_for_who_can_unpack(accepted: str) -> None:
    reader = Client({"X-Auditor-Token": access.token(), "Accept-Encoding": accepted})
    answer = reader.get("map/1/cross_entropy")
    assert answer.headers.get("Content-Encoding", "identity") == accepted
    assert answer.content == bench.map_bytes(1, "cross_entropy")


def test_image__is_a_picture_that_nobody_enlarged() -> None:
    answer = STRANGER.get("image/1/0", params={"size": 128, "t": access.token()})
    assert answer.headers["content-type"] == "image/png"
    assert max(Image.open(io.BytesIO(answer.content)).size) == 8


def test_image__a_close_look_is_the_original_whatever_its_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUDITOR_HOME", str(tmp_path / "other"))
    for name, side in (("small", 20), ("photo", 300)):
        for number in range(2):
            (tmp_path / "source" / name).mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (side, side), (number, 9, side % 255)).save(
                tmp_path / "source" / name / f"{number}.png"
            )
    imports.import_dataset(tmp_path / "source", name="sizes", workers=1)
    params = {"size": 2048, "t": access.token()}
    answers = [STRANGER.get(f"image/1/{sample}", params=params) for sample in range(4)]
    sizes = {max(Image.open(io.BytesIO(answer.content)).size) for answer in answers}
    assert sizes == {300, 20}


def test_image__an_id_that_another_home_gives_too_shows_its_dataset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = []
    for name, colour in (("first", (200, 0, 0)), ("second", (0, 0, 200))):
        monkeypatch.setenv("AUDITOR_HOME", str(tmp_path / f"home of {name}"))
        folder = tmp_path / name / "cat"
        folder.mkdir(parents=True)
        for number in range(2):
            Image.new("RGB", (32, 32), (*colour[:2], colour[2] + number)).save(folder / f"{number}.png")
        (tmp_path / name / "dog").mkdir()
        Image.new("RGB", (32, 32), (9, 200, 9)).save(tmp_path / name / "dog" / "2.png")
        assert imports.import_dataset(tmp_path / name, name=name, workers=1).dataset_id == 1
        answer = STRANGER.get("image/1/0", params={"size": 64, "t": access.token()})
        shown.append(Image.open(io.BytesIO(answer.content)).convert("RGB").getpixel((9, 9)))
    assert shown == [(200, 0, 0), (0, 0, 200)]


def test_image__a_close_look_is_upright_and_the_cached_picture_stands_in_for_a_lost_original(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUDITOR_HOME", str(tmp_path / "other"))
    turned = Image.Exif()
    turned[0x0112] = 6
    for number in range(2):
        folder = tmp_path / "source" / "ab"[number]
        folder.mkdir(parents=True)
        picture = Image.effect_noise((300, 900), 50 + number)
        picture.save(folder / f"{number}.jpg", exif=turned)
    imports.import_dataset(tmp_path / "source", name="turned", image_size=32, workers=1)

    def size(wanted: int) -> tuple[int, int]:
        answer = STRANGER.get("image/1/0", params={"size": wanted, "t": access.token()})
        assert answer.headers["content-type"] == ("image/jpeg" if wanted > 64 else "image/png")
        return Image.open(io.BytesIO(answer.content)).size

    assert size(450) == (450, 150)
    assert size(96) == (96, 32), "a thumbnail that is larger than the cache is as sharp"
    (tmp_path / "source" / "a" / "0.jpg").unlink()
    assert size(45) == (32, 11)  # the cache's, without what fills up its square


def test_image__unknown_sample_is_not_found(client: Client) -> None:
    assert client.get("image/1/9999").status_code == 404


def test_queue__a_users_mistake_is_one_line(client: Client) -> None:
    answer = client.post("queue", {"audit": 77})
    assert answer.status_code == 400
    assert answer.json()["error"] == "There is no audit 77; `auditor status NAME` lists a dataset's audits."


def test_queue__an_unexpected_error_is_logged_with_the_id_that_is_shown(
    client: Client, copied_home: Path
) -> None:
    probs = arrays.engine_folder(1, "cross_entropy") / "pred_probs.npy"
    np.save(probs, np.load(probs)[:1])
    answer = client.post("queue", {"audit": 1, "where": {"engine": "cross_entropy"}})
    assert answer.status_code == 500
    number = answer.json()["error"].split("logged as ")[1].split(" ")[0]
    log = (copied_home / "app.log").read_text()
    assert f"error {number}" in log
    assert "IndexError: " in log


def test_blind__verdict_is_recorded_and_taken_back(client: Client) -> None:
    draw = drawing.draw(DATASET, 4)
    sample = draw.sample_ids[0]
    verdict = {
        "token": "a",
        "draw": draw.id,
        "sample": sample,
        "decision": "label",
        "label": 3,
        "reviewer": "Ada",
    }
    answer = {"token": "a", "asks": "", "judged": [f"{draw.id}/{sample}"]}
    assert client.post("blind", {"verdicts": [verdict]}).json() == {"results": [answer]}
    assert verifying.rows(1).true_labels.tolist() == [3]
    mine, theirs = draw.sample_ids[1:3]
    for one, reviewer in ((mine, "Ada"), (theirs, "Bob")):
        decide(1, one, "exclude", reviewer=reviewer)
    for one, asks in ((mine, blind.ASKS_OWN), (theirs, blind.ASKS_OTHERS)):
        results = client.post("blind", {"verdicts": [verdict | {"sample": one}]}).json()["results"]
        assert results[0]["asks"] == asks
        client.post("blind-undo", {"draw": draw.id, "sample": one, "reviewer": "Ada"})
    client.post("blind-undo", {"draw": draw.id, "sample": sample, "reviewer": "Ada"})
    assert verifying.rows(1).size == 0


def test_blind_undo__names_the_reviewers_verdict_before(client: Client) -> None:
    draw = drawing.draw(DATASET, 4)
    for sample, reviewer in zip(draw.sample_ids, ("Ada", "Ada", "Grace", "Ada"), strict=True):
        blind.record(draw.id, sample, "unsure", reviewer=reviewer)
    told = []
    for place in (3, 1, 0):
        body = {"draw": draw.id, "sample": draw.sample_ids[place], "reviewer": "Ada"}
        told.append(client.post("blind-undo", body).json()["last"])
    assert [one and (one["draw"], one["sample"]) for one in told] == [
        (draw.id, draw.sample_ids[1]),
        (draw.id, draw.sample_ids[0]),
        None,
    ]


def test_blind__a_sample_outside_the_draw_is_refused(client: Client) -> None:
    draw = drawing.draw(DATASET, 4)
    other = next(i for i in range(240) if i not in draw.sample_ids)
    verdict = {"token": "a", "draw": draw.id, "sample": other, "decision": "unsure", "reviewer": "Ada"}
    answer = client.post("blind", {"verdicts": [verdict]}).json()["results"][0]
    assert "error" in answer
    assert verifying.rows(1).size == 0


def test_post__a_body_is_counted_while_it_is_read(client: Client) -> None:
    taken = []

    async def endless() -> AsyncIterator[bytes]:
        for number in range(100):
            taken.append(number)
            yield bytes(MAX_BODY_BYTES // 4)

    answer = client.send("POST", "newest", content=endless())
    assert (answer.status_code, answer.json()) == (400, {"error": "The request is too large."})
    assert len(taken) == 5


def test_token__only_the_owner_can_read_it(copied_home: Path) -> None:
    access.token()
    assert stat.S_IMODE((copied_home / "app_token").stat().st_mode) == 0o600


def test_token__an_empty_file_is_made_anew(copied_home: Path) -> None:
    path = copied_home / "app_token"
    path.write_text("")  # what a kill between making and writing it left
    assert len(access.token()) == 32
    assert path.read_text() == access.token()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not list(copied_home.glob(".app_token*"))


def test_token__servers_that_start_together_have_the_same(tmp_path: Path) -> None:
    script = "from app.session import access; print(access.token())"
    home = os.environ | {"AUDITOR_HOME": str(tmp_path / "new")}
    servers = [
        subprocess.Popen([sys.executable, "-c", script], env=home, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    tokens = {server.communicate(timeout=WAIT_S)[0] for server in servers}
    assert tokens == {(tmp_path / "new" / "app_token").read_text() + "\n"}


@pytest.mark.parametrize("route", ["verdicts", "blind"])
def test_post__a_locked_catalog_is_no_word_against_a_verdict(
    client: Client, monkeypatch: pytest.MonkeyPatch, copied_home: Path, route: str
) -> None:
    draw = drawing.draw(DATASET, 4)
    verdict = {"token": "a", "dataset": 1, "draw": draw.id, "sample": draw.sample_ids[0], "reviewer": "Ada"}
    verdict |= {"decision": "keep"} if route == "verdicts" else {"decision": "exclude"}
    db.close_all()
    monkeypatch.setattr(db, "WRITE_WAIT_S", 0.1)
    other = sqlite3.connect(copied_home / "catalog.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    answer = client.post(route, {"verdicts": [verdict]})
    assert answer.status_code == 503
    assert "try again in a minute" in answer.json()["error"]
    other.execute("ROLLBACK")
    other.close()
    answer = client.post(route, {"verdicts": [verdict]})
    assert answer.status_code == 200
    assert "error" not in answer.json()["results"][0]
    db.close_all()


def test_file__a_finished_export_is_handed_over_under_its_name(client: Client, copied_home: Path) -> None:
    number = export_job("finished")
    folder = settings().job_folder(number)
    folder.mkdir(parents=True)
    (folder / "a b-cleaned.csv").write_text("sample_id\n1\n")
    answer = client.get(f"file/{number}?t={access.token()}")
    assert (answer.status_code, answer.text) == (200, "sample_id\n1\n")
    assert answer.headers["content-disposition"].startswith("attachment; filename")
    assert "a%20b-cleaned.csv" in answer.headers["content-disposition"]
    assert STRANGER.get(f"file/{number}?t=guessed").status_code == 403


@pytest.mark.parametrize(
    ("status", "name"), [("running", "x.csv"), ("finished", "../../../app_token"), ("finished", "")]
)
def test_file__nothing_else_of_the_disk_is_handed_over(client: Client, status: str, name: str) -> None:
    number = export_job(status, name)
    settings().job_folder(number).mkdir(parents=True)
    (settings().job_folder(number) / "x.csv").write_text("half")
    answer = client.get(f"file/{number}?t={access.token()}")
    assert answer.status_code == 404
    assert "has no file to download" in answer.text
    assert client.get(f"file/999?t={access.token()}").status_code == 404


def export_job(status: str, name: str = "a b-cleaned.csv") -> int:
    with db.session() as session:
        number = jobs.create(session, "export", DATASET, dataset_id=1, arguments={"file": name})
        jobs.change(session, number, status=status)
    return number


@pytest.fixture
def proxied(monkeypatch: pytest.MonkeyPatch) -> None:
    """People sign in at a proxy."""
    monkeypatch.setenv("AUDITOR_USER_HEADER", "X-Forwarded-User")


@pytest.fixture
def of(proxied: None, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Client]:
    """The page of somebody who has a role."""

    def page(name: str, role: str) -> Client:
        monkeypatch.setenv("AUDITOR_OWNERS", name if role == OWNER else "")
        monkeypatch.setenv("AUDITOR_REVIEWERS", name if role == REVIEWER else "")
        return Client({"X-Auditor-Token": access.sign(name)})

    return page


VERDICT = {"token": "1", "dataset": 1, "audit": 1, "sample": 3, "decision": "keep", "reviewer": "ben"}


def test_post__a_verdict_needs_a_reviewer_and_carries_the_own_name(
    of: Callable[[str, str], Client],
) -> None:
    assert of("ben", REVIEWER).post("verdicts", {"verdicts": [VERDICT]}).json()["results"][0]["review"]
    assert of("ben", READER).post("verdicts", {"verdicts": [VERDICT]}).status_code == 403
    for path, body in (("verdicts", {"verdicts": [VERDICT]}), ("undo", {"audit": 1, "reviewer": "ben"})):
        answer = of("eve", OWNER).post(path, body)
        assert answer.status_code == 403
        assert "signed in as eve" in answer.json()["error"]
    assert of("eve", READER).get("image/1/3").status_code == 200


def test_visitor__has_the_role_of_now(
    of: Callable[[str, str], Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = of("ben", REVIEWER)
    assert page.post("undo", {"audit": 1, "reviewer": "ben"}).status_code == 200
    monkeypatch.setenv("AUDITOR_REVIEWERS", "ann")
    assert page.post("undo", {"audit": 1, "reviewer": "ben"}).status_code == 403


def test_routes__what_a_reader_may(of: Callable[[str, str], Client]) -> None:
    page = of("ben", READER)
    posts = {route.path.removeprefix("/bench/") for route in ROUTES if "POST" in (route.methods or ())}
    assert {path for path in posts if page.post(path, {}).status_code != 403} == {
        *("card", "mask-card", "mask-done", "newest", "progress", "queue-size")
    }
    assert page.get(f"file/1?t={access.sign('ben')}").status_code == 403


def test_told_by_proxy__one_name() -> None:
    assert sign_in.told_by_proxy([" ben "], "X-User") == "ben"
    for values in ([], [" "]):
        with pytest.raises(AuditorError, match="did not say who you are"):
            sign_in.told_by_proxy(values, "X-User")
    with pytest.raises(AuditorError, match="names you 2 times"):
        sign_in.told_by_proxy(["eve", "ben"], "X-User")


@pytest.mark.usefixtures("proxied")
def test_post__the_secret_of_the_home_opens_nothing_where_people_sign_in(client: Client) -> None:
    assert client.post("card", {"audit": 1, "sample": 3}).status_code == 403
    assert client.get("image/1/3").status_code == 403


def test_signed__forged_or_old_tokens_say_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    token = access.sign("ben")
    assert access.signed(token) == "ben"
    body, seal = token.split(".")
    eve, _ = access.sign("eve").split(".")
    known = hmac.new(access.token().encode(), eve.encode(), hashlib.sha256).hexdigest()
    for forged in (
        f"{eve}.{seal}",
        f"{eve}.{known}",
        body,
        f"{body}.",
        f"{body}.{seal[:-1]}",
        "",
        ".",
        "é.é",
        None,
    ):
        assert access.signed(forged) is None
    now = time.time()
    monkeypatch.setattr(access.time, "time", lambda: now + 24 * 3600)
    assert access.signed(token) is None
