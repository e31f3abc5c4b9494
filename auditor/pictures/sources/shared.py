"""Sources whose labels are sets of classes; of folders a picture is in each of its classes' folders."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace

from auditor.ground.errors import ImportRefusedError
from auditor.pictures.sources.annotations import RenamedSource
from auditor.pictures.sources.folder import FolderSource
from auditor.pictures.sources.reading import UnreadableError, read_bytes
from auditor.pictures.sources.rows import Problem, Source, SourceOptions, SourceRow
from auditor.pictures.sources.sets import set_text


def sets_of(source: Source, options: SourceOptions) -> Source:
    """Return a source whose labels are sets of classes.

    Raises:
        ImportRefusedError: it is asked for what only one label a picture can have.
    """
    asked = {
        "true_label_column": options.true_label_column,
        "annotators": options.annotators or options.annotator_column,
        "class_names": options.class_names,
        "boxes": options.boxes,
    }
    for field, value in asked.items():
        if value:
            named = field.replace("_", " ")
            raise ImportRefusedError(
                f"With several labels a picture, {named} cannot be read; leave that out.", field=field
            )
    if isinstance(source, FolderSource):
        return SharedPictures(source)
    return RenamedSource(source, replace(source.info, is_set=True), str)


class SharedPictures(RenamedSource):
    """Class folders that share pictures: files with the same bytes are one picture, with all their classes.

    Splits stay apart: a picture in ``train`` and ``test`` is one in each.
    """

    def __init__(self, source: FolderSource) -> None:
        """Nothing is read before the first pass."""
        super().__init__(source, replace(source.info, is_set=True), str)
        self._hashes: dict[str, bytes] = {}

    def rows(self) -> Iterator[SourceRow | Problem]:
        """See ``Source``: the first file of each picture."""
        items = list(self._source.rows())
        classes: dict[tuple[str | None, bytes], list[str]] = {}
        keys = [None if isinstance(item, Problem) else (item.split, self._hash(item)) for item in items]
        for item, key in zip(items, keys, strict=True):
            if key is not None and isinstance(item, SourceRow):
                classes.setdefault(key, []).extend([item.label] if item.label is not None else [])
        for item, key in zip(items, keys, strict=True):
            if isinstance(item, Problem):
                yield item
            elif key is not None and (names := classes.pop(key, None)) is not None:
                yield replace(item, label=set_text(names) if names else None)
        self.ignored = self._source.ignored

    def _hash(self, row: SourceRow) -> bytes:
        """Return what tells its bytes; its place where they cannot be read, which is said later."""
        if row.location not in self._hashes:
            (payload,) = self._source.payloads([row.location])
            try:
                data = read_bytes(self.info.root, payload) if isinstance(payload, str) else payload
            except UnreadableError:
                data = row.location.encode("utf-8", "surrogateescape")
            self._hashes[row.location] = hashlib.blake2b(data, digest_size=20).digest()
        return self._hashes[row.location]
