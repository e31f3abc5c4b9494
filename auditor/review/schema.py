"""The types of a verdict, the same for whoever hands one in: a browser, a file or a Python program.

Python's ``0 <= 1.5 < 3`` holds and SQLite stores 1.5 where a class belongs, so types are checked before anything is
written.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, Strict, ValidationError

from auditor.ground.errors import ReviewError

LARGEST = 2**31 - 1
"""What a number of the catalog holds on every database."""
Model = TypeVar("Model", bound=BaseModel)


def _whole(value: Any) -> int:
    if isinstance(value, bool):
        raise ValueError("must be a whole number, not true or false")
    try:
        return operator.index(value)  # of NumPy too
    except TypeError:
        raise ValueError("must be a whole number") from None


def _storable(text: str) -> str:
    if "\0" in text:
        raise ValueError("must not hold the character NUL")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("must be text that can be stored as UTF-8") from None
    return text


Whole = Annotated[int, BeforeValidator(_whole), Field(ge=-LARGEST - 1, le=LARGEST)]
"""A whole number: no 1.0, no "1", no true."""
Place = Annotated[int, BeforeValidator(_whole), Field(ge=0, le=LARGEST)]
"""Of a sample, an audit, a dataset."""
Text = Annotated[str, Strict(), AfterValidator(_storable), Field(max_length=1_000)]


class Body(BaseModel):
    """What comes from outside; names that nobody knows are passed over."""

    model_config = ConfigDict(frozen=True)


class Said(Body):
    """What a person says about one sample."""

    sample: Place
    decision: Text
    reviewer: Text
    label: Whole | None = None
    number: Annotated[float, Strict(), Field(allow_inf_nan=False)] | None = None
    """Of numbers, in place of a label."""
    labels: Annotated[list[Whole], Field(max_length=1_000)] | None = None
    """Of sets of classes, in place of a label."""


class Verdict(Said):
    """A decision on a sample of a dataset."""

    dataset: Place
    audit: Place | None = None
    note: Annotated[str, Strict(), AfterValidator(_storable), Field(max_length=100_000)] | None = None
    created_at: datetime | None = None


class BlindVerdict(Said):
    """A verdict on a sample of a draw, given without a look at the suggestion."""

    draw: Place


def read(model: type[Model], values: Any) -> Model:
    """``values`` as that model.

    Raises:
        ReviewError: a field is missing or of another type; the text names it and what is wrong, on one line.
    """
    try:
        return model.model_validate(values if isinstance(values, Mapping) else {"": values}, strict=False)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"])[:100]
        what = first["msg"].removeprefix("Value error, ")
        raise ReviewError(
            f"{model.__name__}: {where or 'it'}: {what}; nothing was written. Correct it and send it again."
        ) from error
