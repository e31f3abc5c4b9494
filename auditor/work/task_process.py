"""A process that does tasks one after another for the process that started it.

It reads lines of JSON from its standard input, ``{"task": SPEC}`` or ``{"stop": true}``, and answers on what was
its standard output with ``{"event": ...}`` and ``{"outcome": ...}``. Whatever libraries print goes to standard
error. When the other end is gone this process ends at once: whoever goes on with the work must not meet it.
"""

from __future__ import annotations

import dataclasses
import json
import os
import queue
import signal
import sys
import threading
from typing import Any, TextIO

from auditor.ground.processes import yield_to_others
from auditor.work import kinds, tasks
from auditor.work.tasks import Event


def main() -> None:
    """Do what standard input asks for until it closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the other end's to answer
    yield_to_others()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)
    asked: queue.SimpleQueue[str] = queue.SimpleQueue()
    should_stop = threading.Event()
    threading.Thread(target=_listen, args=(asked, should_stop), daemon=True).start()

    def say(event: Event) -> None:
        _answer(answers, "event", event)
        if should_stop.is_set():
            raise KeyboardInterrupt

    while True:
        spec = kinds.of_json(asked.get())
        _answer(answers, "outcome", tasks.attempt(spec, say))


def _listen(asked: queue.SimpleQueue[str], should_stop: threading.Event) -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "stop" in message:
            should_stop.set()
        else:
            asked.put(json.dumps(message["task"]))
    os._exit(1)


def _answer(answers: TextIO, kind: str, value: Any) -> None:
    answers.write(json.dumps({kind: dataclasses.asdict(value)}) + "\n")


if __name__ == "__main__":
    main()
