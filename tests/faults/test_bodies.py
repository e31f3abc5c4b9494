"""Whatever a browser or a program hands to the routes and to the Python API: a line with 400, never 500."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.applications import Starlette

from app.server.routes import ROUTES
from app.session import access
from auditor.catalog import reviews
from auditor.catalog.db import session
from auditor.ground.errors import ReviewError
from auditor.review import blind, decisions, drawing
from tests.auditor.catalogs import add_dataset

pytestmark = pytest.mark.usefixtures("home")
PATHS = ["queue", "queue-size", "card", "verdicts", "undo", "progress", "blind", "blind-undo"]
PATHS += ["lease", "mask-card", "mask-verdict", "mask-undo", "mask-done"]
VERDICT = {"token": "t", "dataset": 1, "sample": 3, "decision": "relabel", "label": 1, "reviewer": "ann"}


def post(path: str, content: bytes) -> httpx.Response:
    async def answer() -> httpx.Response:
        transport = httpx.ASGITransport(app=Starlette(routes=ROUTES))
        async with httpx.AsyncClient(transport=transport, base_url="http://app") as client:
            headers = {"X-Auditor-Token": access.token()}
            return await client.post(f"/bench/{path}", content=content, headers=headers)

    return asyncio.run(answer())


def num_reviews() -> int:
    with session() as open_session:
        return len(reviews.log(open_session, 1))


WRONG = [
    *({"label": 1.5}, {"label": "1"}, {"label": True}, {"label": [1]}, {"label": 10**30}, {"label": None}),
    *({"sample": -1}, {"sample": 1.0}, {"sample": "3"}, {"sample": 10**30}, {"sample": None}),
    *({"dataset": None}, {"dataset": "1"}, {"dataset": 2**63}, {"dataset": 9}),
    *(
        {"reviewer": 7},
        {"reviewer": ""},
        {"reviewer": "a\0b"},
        {"reviewer": "\ud800"},
        {"reviewer": "a" * 9_999},
    ),
    *({"decision": 1}, {"decision": "delete"}, {"audit": 1.5}, {"audit": 2**40}, {"seen": "x"}),
    *({"decision": "multiple", "labels": "01"}, {"decision": "multiple", "labels": [0, 1.0]}),
]


@pytest.mark.parametrize("change", WRONG, ids=str)
def test_verdicts__of_a_wrong_type_are_refused_one_by_one(change: dict[str, Any]) -> None:
    add_dataset()
    body = {"verdicts": [VERDICT | change, VERDICT | {"sample": 4}]}
    answer = post("verdicts", json.dumps(body).encode())
    assert answer.status_code == 200, answer.text
    wrong, right = answer.json()["results"]
    assert wrong["token"] == "t"
    assert "\n" not in wrong["error"]
    assert right["review"] == 1
    assert num_reviews() == 1


@pytest.mark.parametrize("change", [{"label": 1.5}, {"label": True}, {"sample": 1.0}], ids=str)
def test_decide__checks_types_as_the_routes_do(change: dict[str, Any]) -> None:
    add_dataset()
    values: dict[str, Any] = {"sample": 3, "label": 1} | change
    with pytest.raises(ReviewError, match=r"must be a whole number"):
        decisions.decide(1, values["sample"], "relabel", label=values["label"], reviewer="ann")
    with pytest.raises(ReviewError, match=r"must be a whole number"):
        decisions.decide_many(1, [(values["sample"], "relabel", values["label"])], reviewer="ann")
    assert num_reviews() == 0


def test_decide__takes_the_whole_numbers_of_numpy() -> None:
    add_dataset()
    decisions.decide(1, np.int64(3), "multiple", labels=[np.int64(0), np.int32(1)], reviewer=" ann ")  # type: ignore[arg-type]
    with session() as open_session:
        (row,) = reviews.log(open_session, 1)
    assert (row.sample_id, row.labels, row.reviewer) == (3, [0, 1], "ann")


def test_record__checks_types_as_the_routes_do() -> None:
    add_dataset()
    drawn = drawing.draw("few", 10)
    with pytest.raises(ReviewError, match=r"label: must be a whole number"):
        blind.record(drawn.id, drawn.sample_ids[0], "label", label=0.5, reviewer="ann")  # type: ignore[arg-type]


BROKEN = [
    b"",
    b"{",
    b"\xff",
    b"[]",
    b"null",
    b"1",
    b'"x"',
    b"[" * 100_000,
    b'{"audit": NaN}',
    b'{"audit": 1e999}',
]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("content", BROKEN, ids=[repr(one[:12]) for one in BROKEN])
def test_post__what_is_no_body_of_the_route_is_one_line(path: str, content: bytes) -> None:
    answer = post(path, content)
    assert answer.status_code == 400
    assert "\n" not in answer.json()["error"]


@pytest.mark.parametrize("query", ["size=x", "size=1e9", "size=" + "9" * 5_000])
def test_image__of_a_size_that_is_no_number_is_not_found(query: str) -> None:
    async def answer() -> httpx.Response:
        transport = httpx.ASGITransport(app=Starlette(routes=ROUTES))
        async with httpx.AsyncClient(transport=transport, base_url="http://app") as client:
            return await client.get(f"/bench/image/{10**30}/0?t={access.token()}&{query}")

    assert asyncio.run(answer()).status_code == 404


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from([1, 3, "ann"])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
FIELDS = st.sampled_from(
    [
        *(
            "audit",
            "dataset",
            "sample",
            "draw",
            "where",
            "after",
            "limit",
            "reviewer",
            "verdicts",
            "decision",
        ),
        *("label", "labels", "seen", "token", "region", "engine", "polygon", "split", "given", "agreement"),
    ]
)
OBJECTS = st.dictionaries(FIELDS, VALUES | st.dictionaries(FIELDS, VALUES, max_size=5), max_size=8)
BODIES = OBJECTS | st.fixed_dictionaries({"verdicts": st.lists(OBJECTS | VALUES, max_size=3)}) | VALUES


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(path=st.sampled_from(PATHS), body=BODIES)
def test_post__never_fails_on_a_generated_body(path: str, body: Any) -> None:
    answer = post(path, json.dumps(body).encode("utf-8", "surrogatepass"))
    assert answer.status_code in (200, 400), answer.text
    assert "\n" not in answer.text
