"""The contract of engines that train a network of timm further."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.engines.test_contract import (
    DEVICES,
    IN_PARTS,
    Runs,
    assert_parts_are_one_run,
    cases,
    runs_of,
)


@pytest.mark.parametrize(("engine", "form", "check"), cases("finetuned"))
@pytest.mark.parametrize("device", DEVICES)
def test_engine(device: str, engine: str, form: str, check: Callable[[Runs], None]) -> None:
    check(runs_of(engine, device, form))


@pytest.mark.parametrize("engine", IN_PARTS)
def test_train_part__all_apart_and_one_killed_give_the_bits_of_one_run(engine: str) -> None:
    assert_parts_are_one_run(engine, "finetuned")
