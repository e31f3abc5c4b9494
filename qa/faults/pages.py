# ruff: noqa: E501
"""A real Chromium before the real app: foreign names for this machine, frames, and names that are scripts."""

from __future__ import annotations

import functools
import os
import random
import shutil
from pathlib import Path
from typing import Any

from qa.faults import doors
from qa.faults.trial import AT_END, FaultError, pictures
from tests.helpers import empty_site

PAYLOADS = [
    *("<img src=x onerror=window.hit=1>", "<script>window.hit=1</script>", "<svg onload=window.hit=1>"),
    *(
        '"><img src=x onerror=window.hit=1>',
        "'><svg onload=window.hit=1>",
        "</script><script>window.hit=1</script>",
    ),
    *(
        "[a](javascript:window.hit=1)",
        "![a](x onerror=window.hit=1)",
        "<a href=javascript:window.hit=1>a</a>",
    ),
    *(
        "{{constructor.constructor('window.hit=1')()}}",
        "${window.hit=1}",
        "<iframe srcdoc='<script>top.hit=1</script>'>",
    ),
    *(
        "$\\href{javascript:window.hit=1}{a}$",
        "`<img src=x onerror=window.hit=1>`",
        "<style onload=window.hit=1></style>",
    ),
    *(
        "<math><mtext></table></math><img src onerror=window.hit=1>",
        ":material/home: <b onclick=window.hit=1>b",
        "--><b>",
    ),
]
SCREENS = [
    "",
    "import",
    "audit",
    "verify",
    "suspects",
    "masks",
    "numbers",
    "map",
    "classes",
    "engines",
    "export",
]
HOSTS = [
    "evil.test",
    "127.0.0.1.evil.test",
    "localhost.evil.test",
    "printer",
    "a.b.c.test",
    "router.local",
    "0.0.0.0",
]
ASK = """async (urls) => {
  const found = [];
  for (const url of urls) {
    for (const mode of ["cors", "no-cors", "same-origin"]) {
      try {
        const answer = await fetch(url, {method: url.includes("bench") ? "POST" : "GET", mode, body: url.includes("bench") ? "{}" : undefined});
        if (answer.type !== "opaque" && answer.ok) found.push(url + " " + (await answer.text()).slice(0, 40));
      } catch (error) {}
    }
  }
  return found;
}"""
SOCKET = """async (url) => await new Promise((resolve) => {
  const socket = new WebSocket(url);
  socket.onopen = () => { socket.close(); resolve("open"); };
  socket.onerror = () => resolve("refused");
  setTimeout(() => resolve("silent"), 8000);
})"""
FRAME = """([kind, url]) => {
  const frame = document.createElement(kind);
  frame[kind === "object" ? "data" : "src"] = url;
  document.body.append(frame);
}"""


def found() -> str | None:
    """The Chromium of this machine."""
    return os.environ.get("AUDITOR_CHROMIUM") or shutil.which("chromium")


@functools.cache
def browser(owner: int) -> Any:
    """One Chromium a process, for which every foreign name is this machine."""
    from playwright.sync_api import sync_playwright

    from tests.browser.conftest import FLAGS

    driver = sync_playwright().start()
    rules = ", ".join(f"MAP {host} 127.0.0.1" for host in HOSTS)
    opened = driver.chromium.launch(executable_path=found(), args=[*FLAGS, f"--host-resolver-rules={rules}"])
    AT_END.append(driver.stop)
    AT_END.append(opened.close)
    return opened


@functools.cache
def other_site(owner: int) -> str:
    """An empty page on another port of this machine."""
    return f"http://127.0.0.1:{empty_site().server_port}"


def visits(luck: random.Random, place: Path) -> None:
    """A page of another name or port asks, listens, and frames the app: it gets nothing."""
    port = doors.app(os.getpid())
    opened = browser(os.getpid())
    page = opened.new_context().new_page()
    try:
        ours = luck.choice([f"http://127.0.0.1:{port}", f"http://localhost:{port}"])
        host = luck.choice(HOSTS)
        if luck.random() < 0.5:
            answer = page.goto(f"http://{host}:{port}/{luck.choice(SCREENS)}")
            if answer is not None and answer.status != 403:
                raise FaultError("wrong", f"{host} got {answer.status}")
        else:
            page.goto(other_site(os.getpid()))
        base = luck.choice([ours, f"http://{host}:{port}"])
        paths = luck.sample(
            ["/", "/_stcore/host-config", "/bench/queue", "/bench/verdicts", "/bench/image/1/0"], 3
        )
        read = page.evaluate(ASK, [base + path for path in paths])
        if read:
            raise FaultError("wrong", f"from {page.url}: read {read}")
        if page.evaluate(SOCKET, f"ws{base[4:]}/_stcore/stream") == "open":
            raise FaultError("wrong", f"from {page.url}: the stream of {base} is open")
        page.evaluate(FRAME, [luck.choice(["iframe", "embed", "object"]), base])
        page.wait_for_timeout(600)
        for frame in page.frames[1:]:
            if "stApp" in frame.content() or "Label auditor" in frame.content():
                raise FaultError("wrong", f"framed in {page.url}")
    finally:
        page.context.close()


def scripts(luck: random.Random, place: Path) -> None:
    """A dataset whose class, file and own name are scripts, on a screen: none of them runs."""
    from auditor.catalog import db
    from auditor.importing.imports import import_dataset
    from auditor.review import decisions

    folder = pictures(place / "set", 6)
    payload = luck.choice(PAYLOADS)
    name = payload.replace("/", "")[:90] + str(luck.randrange(10**6))
    lines = [
        f'"{path.relative_to(folder)}","{_cell(payload)} {path.parent.name}","{_cell(payload)}"'
        for path in folder.rglob("*.png")
    ]
    table = folder / "t.csv"
    table.write_text("\n".join(["filepath,label,note", *lines]))
    number = import_dataset(table, name=name, image_size=8, workers=1).dataset_id
    decisions.decide(number, 0, "exclude", reviewer=payload, note=payload)
    db.close_all()
    page = browser(os.getpid()).new_context().new_page()
    try:
        from urllib.parse import quote

        base = f"http://127.0.0.1:{doors.app(os.getpid())}"
        for screen in luck.sample(SCREENS, 2):
            page.goto(f"{base}/{screen}?dataset={quote(name)}&note={quote(payload)}")
            page.get_by_test_id("stSidebar").wait_for(timeout=40_000)
            page.wait_for_timeout(1_500)
            if any(frame.evaluate("() => window.hit") for frame in page.frames):
                raise FaultError("wrong", f"{payload} ran on {screen}")
    finally:
        page.context.close()


def _cell(text: str) -> str:
    return text.replace('"', '""')
