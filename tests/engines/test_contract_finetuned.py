"""The contract of engines that train a network of timm further."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.engines.test_contract import (
    DEVICES,
    Runs,
    cases,
    runs_of,
)


@pytest.mark.parametrize(("engine", "form", "check"), cases("finetuned"))
@pytest.mark.parametrize("device", DEVICES)
def test_engine(device: str, engine: str, form: str, check: Callable[[Runs], None]) -> None:
    check(runs_of(engine, device, form))
