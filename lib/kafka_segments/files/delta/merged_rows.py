"""What a merge by key makes of the rows of some files: tables of Arrow in, tables of Arrow out."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_HELD, _NEW = "held", "new"
_DELETED = -1


class Merged(NamedTuple):
    """The rows that come and go.

    ``changed`` are the places of the files whose rows are no longer as they were, ``rows`` those
    rows as they are now, and the inserted ones. A row of ``before`` became that of ``after`` at the
    same place.
    """

    changed: list[int]
    rows: pa.Table
    before: pa.Table
    after: pa.Table
    deleted: pa.Table
    inserted: pa.Table


def merge_rows(
    files: Sequence[pa.Table],
    rows: pa.Table,
    *,
    keys: Sequence[str],
    is_gone: pa.ChunkedArray | None,
    keeps_same: bool,
) -> Merged | None:
    """Update rows of files by key, delete those that are gone, insert those that are new.

    Keys that are null are never equal. Where ``is_gone`` is true, a row is deleted if the files
    have it, and ignored if they do not.
    ``keeps_same``: a file whose rows would be written as they were does not count as changed.

    None: several new rows have the key of one row in the files.
    """
    schema = rows.schema
    held = pa.concat_tables([schema.empty_table(), *files])
    held_at, new_at = _pairs(held, rows, keys)
    if len(np.unique(held_at)) < len(held_at):
        return None
    none_is = np.zeros(len(rows), dtype=bool)
    gone = none_is if is_gone is None else _as_numpy(pc.fill_null(is_gone, False))
    may_come = ~none_is if is_gone is None else ~_as_numpy(pc.fill_null(is_gone, True))
    may_come[new_at] = False
    (come,) = np.nonzero(may_come)

    every = pa.concat_tables([held, rows])
    become = np.arange(len(held))
    become[held_at] = np.where(gone[new_at], _DELETED, len(held) + new_at)
    changed, kept = [], [len(held) + come]
    first = 0
    for place, file in enumerate(files):
        of_file = become[first : first + len(file)]
        was = np.arange(first, first + len(file))
        first += len(file)
        if (of_file == was).all() or (keeps_same and _is_same(every, of_file, file)):
            continue
        changed.append(place)
        kept.append(of_file[of_file != _DELETED])
    stays = ~gone[new_at]
    return Merged(
        changed,
        rows=every.take(np.concatenate([*kept[1:], kept[0]])),
        before=held.take(held_at[stays]),
        after=rows.take(new_at[stays]),
        deleted=held.take(held_at[~stays]),
        inserted=rows.take(come),
    )


def rows_gone(held: pa.Table, rows: pa.Table, *, keys: Sequence[str]) -> pa.Table | None:
    """Return the rows whose keys no other has; None: a key is null or repeated in one of both."""
    if not all(_has_unique(table, keys) for table in (held, rows)):
        return None
    held_at, _ = _pairs(held, rows, keys)
    is_gone = np.ones(len(held), dtype=bool)
    is_gone[held_at] = False
    return held.filter(pa.array(is_gone))


def _has_unique(table: pa.Table, keys: Sequence[str]) -> bool:
    named = table.select(list(keys))
    has_null = any(column.null_count for column in named.columns)
    return not has_null and len(named.group_by(list(keys)).aggregate([])) == len(table)


def _pairs(held: pa.Table, rows: pa.Table, keys: Iterable[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return the places of rows with the same key, in the one table and in the other."""
    names = [f"key{number}" for number, _ in enumerate(keys)]
    chosen = (
        table.select(list(keys)).rename_columns(names).append_column(name, _places(table))
        for table, name in ((held, _HELD), (rows, _NEW))
    )
    left, right = chosen
    found = left.join(right, names, join_type="inner").sort_by(_HELD)
    return _as_numpy(found[_HELD]), _as_numpy(found[_NEW])


def _places(table: pa.Table) -> pa.Array:
    return pa.array(np.arange(len(table)))


def _as_numpy(column: pa.ChunkedArray) -> np.ndarray:
    return np.array(column.to_numpy(zero_copy_only=False))


def _is_same(every: pa.Table, chosen: np.ndarray, file: pa.Table) -> bool:
    return _DELETED not in chosen and bool(every.take(chosen).equals(file))
