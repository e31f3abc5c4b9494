"""HTTP beside Streamlit: pictures to show, pages of the queue, and verdicts to keep.

Every route needs the secret of ``access.py``. Bodies and answers are JSON; what an answer means is written in
``bench.py``, which knows nothing of HTTP.
"""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Awaitable, Callable
from typing import Any, Literal

from pydantic import FiniteFloat
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from app.server import bench, files, masks, pictures, verify
from app.session import failures, sign_in
from app.session.access import OWNER, READER, REVIEWER, Person
from auditor.ground.errors import AuditorError, CatalogError
from auditor.pictures import cache
from auditor.review import schema

Endpoint = Callable[[Request], Awaitable[Response]]
DAY_S = 86_400
MAX_BODY_BYTES = 4_000_000
POINTS = "application/octet-stream"
PACKING_LEVEL = 4
MAX_PICTURE = 2048
"""Most pixels a side of a picture: more than a window shows."""


def _json(answer: Callable[[dict[str, Any]], Any], needs: str = READER) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        person = sign_in.visitor(request.headers.get("X-Auditor-Token"))
        if person is None:
            return JSONResponse({"error": "This page is from another session; reload it."}, status_code=403)
        if not person.may(needs):
            return JSONResponse({"error": sign_in.SENTENCES[person.role]}, status_code=403)
        body = bytearray()
        async for part in request.stream():
            body += part
            if len(body) > MAX_BODY_BYTES:
                return JSONResponse({"error": "The request is too large."}, status_code=400)
        try:
            payload = json.loads(body)
        except (ValueError, RecursionError):
            return JSONResponse({"error": "The request is not JSON."}, status_code=400)
        if (other := _somebody_else(person, payload)) is not None:
            told = f"You are signed in as {person.name} and this page is {other}'s; reload it."
            return JSONResponse({"error": told}, status_code=403)
        try:
            return JSONResponse(_finite(await run_in_threadpool(answer, payload)))
        except CatalogError as error:  # the same request may succeed in a minute
            return JSONResponse({"error": str(error)}, status_code=503)
        except AuditorError as error:
            return JSONResponse({"error": str(error)}, status_code=400)
        except Exception as error:  # the edge: logged with an id, shown as one line
            return JSONResponse({"error": failures.sentence(error)}, status_code=500)

    return endpoint


def _somebody_else(person: Person, payload: Any) -> str | None:
    """Return whoever else the request speaks for, where people sign in."""
    if person.name is None or not isinstance(payload, dict):
        return None
    verdicts = payload.get("verdicts")
    said = [payload, *(verdicts if isinstance(verdicts, list) else [])]
    names = (one["reviewer"] for one in said if isinstance(one, dict) and one.get("reviewer") is not None)
    return next((str(name) for name in names if name != person.name), None)


def _binary(answer: Callable[[Request], tuple[bytes, str]]) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        known = request.headers.get("X-Auditor-Token") or request.query_params.get("t")
        if sign_in.visitor(known) is None:
            return Response(status_code=403)
        try:
            content, media_type = await run_in_threadpool(answer, request)
        except AuditorError as error:
            return Response(str(error), status_code=404, media_type="text/plain")
        except Exception as error:
            return Response(failures.sentence(error), status_code=500, media_type="text/plain")
        headers = {"Cache-Control": f"private, max-age={DAY_S}", "X-Content-Type-Options": "nosniff"}
        if media_type == POINTS and "gzip" in request.headers.get("Accept-Encoding", ""):
            # Streamlit would pack it with the highest level: 1 % smaller, in .27 s in place of .02.
            content = await run_in_threadpool(gzip.compress, content, PACKING_LEVEL, mtime=0)
            headers |= {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
        return Response(content, media_type=media_type, headers=headers)

    return endpoint


class _Picture(schema.Body):
    dataset: schema.Place
    sample: schema.Place
    size: int = 128


class _Map(schema.Body):
    audit: schema.Place
    engine: schema.Text
    box: tuple[FiniteFloat, FiniteFloat, FiniteFloat, FiniteFloat] | None = None
    """A part of the map: left, low, right, high."""
    tag: Literal["review", "reviewer", "split"] = "review"


class _Layer(schema.Body):
    audit: schema.Place
    sample: schema.Place
    layer: schema.Text


def _mask_layer(request: Request) -> tuple[bytes, str]:
    asked = schema.read(_Layer, request.path_params)
    return masks.layer(asked.audit, asked.sample, asked.layer), "image/png"


def _image(request: Request) -> tuple[bytes, str]:
    asked = schema.read(_Picture, {**request.query_params, **request.path_params})
    size = min(MAX_PICTURE, max(16, asked.size))
    picture = pictures.encoded_picture(asked.dataset, asked.sample, size)
    return picture, cache.media_type(picture)


def _map(request: Request) -> tuple[bytes, str]:
    query = dict(request.query_params)
    wanted = {
        name: query[name].split(",") if name == "box" else query[name]
        for name in query.keys() & {"box", "tag"}
    }
    asked = schema.read(_Map, request.path_params | wanted)
    points = bench.map_bytes(asked.audit, asked.engine, asked.box, tag=asked.tag)
    return points, POINTS


async def _file(request: Request) -> Response:
    """The finished file of an export, read from the disk while it is sent."""
    person = sign_in.visitor(request.query_params.get("t"))
    if person is None or not person.may(OWNER):
        return Response(status_code=403)
    try:
        path = await run_in_threadpool(files.of_job, request.path_params["job"])
    except AuditorError as error:
        return Response(str(error), status_code=404, media_type="text/plain")
    headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
    return FileResponse(path, filename=path.name, media_type=files.MIME[path.suffix], headers=headers)


def _finite(value: Any) -> Any:
    """JSON has no NaN; a missing number is null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_finite(inner) for inner in value]
    return value


ROUTES = [
    Route("/bench/image/{dataset:int}/{sample:int}", _binary(_image)),
    Route("/bench/map/{audit:int}/{engine:str}", _binary(_map)),
    Route("/bench/mask/{audit:int}/{sample:int}/{layer:str}.png", _binary(_mask_layer)),
    Route("/bench/mask-card", _json(masks.card), methods=["POST"]),
    Route("/bench/mask-verdict", _json(masks.record, REVIEWER), methods=["POST"]),
    Route("/bench/mask-done", _json(masks.done), methods=["POST"]),
    Route("/bench/mask-undo", _json(masks.undo, REVIEWER), methods=["POST"]),
    Route("/bench/file/{job:int}", _file),
    Route("/bench/queue", _json(bench.queue, REVIEWER), methods=["POST"]),
    Route("/bench/queue-size", _json(bench.queue_size), methods=["POST"]),
    Route("/bench/card", _json(bench.card), methods=["POST"]),
    Route("/bench/verdicts", _json(bench.record, REVIEWER), methods=["POST"]),
    Route("/bench/class", _json(bench.add_class, REVIEWER), methods=["POST"]),
    Route("/bench/undo", _json(bench.undo, REVIEWER), methods=["POST"]),
    Route("/bench/cards", _json(bench.cards, REVIEWER), methods=["POST"]),
    Route("/bench/lease", _json(bench.lease, REVIEWER), methods=["POST"]),
    Route("/bench/newest", _json(bench.newest), methods=["POST"]),
    Route("/bench/progress", _json(bench.progress), methods=["POST"]),
    Route("/bench/blind", _json(verify.record, REVIEWER), methods=["POST"]),
    Route("/bench/blind-undo", _json(verify.undo, REVIEWER), methods=["POST"]),
]
