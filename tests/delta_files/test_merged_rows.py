"""What a merge makes of rows, held against a loop over drawn ones."""

import random
from typing import Any

import pyarrow as pa

from kafka_segments.files.delta.merged_rows import merge_rows

KEYS = ("name", "number")
SCHEMA = pa.schema(
    [
        ("number", pa.int64()),
        ("name", pa.string()),
        ("value", pa.int32()),
        ("list", pa.list_(pa.struct([("a", pa.int32())]))),
    ]
)
Row = dict[str, Any]


def _table(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def _drawn(draw: random.Random, most: int) -> list[Row]:
    return [
        {
            "number": draw.choice([None, 1, 2]),
            "name": draw.choice([None, "a", "b"]),
            "value": draw.randrange(2),
            "list": draw.choice([None, [], [{"a": 1}, None]]),
        }
        for _ in range(draw.randrange(most))
    ]


def _is_match(one: Row, other: Row) -> bool:
    return all(one[key] is not None and one[key] == other[key] for key in KEYS)


def _by_loop(
    files: list[list[Row]], rows: list[Row], gone: list[bool | None], *, keeps_same: bool
) -> dict[str, Any] | None:
    found: dict[str, Any] = {"changed": [], "rows": [], "updated": [], "deleted": []}
    for number, file in enumerate(files):
        become, is_touched = [], False
        for held in file:
            matches = [place for place, row in enumerate(rows) if _is_match(held, row)]
            if len(matches) > 1:
                return None
            is_touched |= bool(matches)
            if matches and gone[matches[0]]:
                found["deleted"].append(held)
            elif matches:
                become.append(rows[matches[0]])
                found["updated"].append((held, rows[matches[0]]))
            else:
                become.append(held)
        if is_touched and not (keeps_same and become == file):
            found["changed"].append(number)
            found["rows"] += become
    found["inserted"] = [
        row
        for row, is_gone in zip(rows, gone, strict=True)
        if is_gone is False and not any(_is_match(row, held) for file in files for held in file)
    ]
    found["rows"] += found["inserted"]
    return found


def test_drawn_rows_become_what_a_loop_makes_of_them(seed: int) -> None:
    ambiguous = same = 0
    for number in range(600):
        draw = random.Random(seed + number)
        files = [_drawn(draw, 6) for _ in range(draw.randrange(4))]
        rows = _drawn(draw, 5)
        if files and draw.random() < 0.3:
            rows = files[0][:1] * draw.choice([1, 1, 2])
        gone = [draw.choice([False, False, False, True, None]) for _ in rows]
        keeps_same = draw.random() < 0.5
        expected = _by_loop(files, rows, gone, keeps_same=keeps_same)

        found = merge_rows(
            [_table(file) for file in files],
            _table(rows),
            keys=KEYS,
            is_gone=pa.chunked_array([gone], pa.bool_()),
            keeps_same=keeps_same,
        )

        if expected is None or found is None:
            assert found is expected
            ambiguous += 1
            continue
        same += keeps_same and bool(expected["updated"]) and not expected["changed"]
        assert found._asdict() == {
            "changed": expected["changed"],
            "rows": _table(expected["rows"]),
            "before": _table([before for before, _ in expected["updated"]]),
            "after": _table([after for _, after in expected["updated"]]),
            "deleted": _table(expected["deleted"]),
            "inserted": _table(expected["inserted"]),
        }
    assert ambiguous > 9
    assert same > 9


def test_without_word_of_what_is_gone_all_rows_are_there() -> None:
    rows: list[Row] = [{"number": 1, "name": name, "value": 0, "list": None} for name in "ab"]

    found = merge_rows([_table(rows[:1])], _table(rows), keys=KEYS, is_gone=None, keeps_same=False)

    assert found is not None
    assert (found.changed, found.rows.to_pylist()) == ([0], rows)
    assert found.inserted.to_pylist() == rows[1:]
