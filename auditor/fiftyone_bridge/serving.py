"""The process that serves FiftyOne's App behind our gate; it ends when its standard input does.

``python -m auditor.fiftyone_bridge.serving`` with one line of JSON on its standard input, from ``start_app``.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from pathlib import Path

from auditor.fiftyone_bridge.actions import REVIEWER
from auditor.fiftyone_bridge.gate import Gate
from auditor.fiftyone_bridge.processes import ADDRESS


def main() -> None:
    """Serve until whoever started us is gone."""
    told = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_input, daemon=True).start()
    if told["reviewer"]:
        os.environ[REVIEWER] = told["reviewer"]
    # As FiftyOne's own server sets it before it loads the rest.
    os.environ["FIFTYONE_SERVER"] = "1"
    os.environ["FIFTYONE_PLUGINS_DIR"] = told["plugins"]
    os.environ["FIFTYONE_APP_THEME"] = "light"
    from auditor.bridges import fiftyone_door

    fiftyone_door.connect()
    from fiftyone.server.app import app
    from fiftyone.server.events import set_port
    from hypercorn.asyncio import serve
    from hypercorn.config import Config

    config = Config()
    config.bind = [f"{ADDRESS}:{told['port']}"]
    set_port(told["port"])
    gate = Gate(app, token=told["token"], roots=[Path(root) for root in told["roots"]], port=told["port"])
    asyncio.run(serve(gate, config))  # type: ignore[arg-type]  # hypercorn has types of its own for ASGI


def _end_with_input() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    main()
