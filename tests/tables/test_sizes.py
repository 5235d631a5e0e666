"""Whether a warehouse holds much or little, by the sizes of files alone."""

from pathlib import Path

import pytest

from kafka_segments.engine.tables.sizes import asks_much, holds_little, holds_much

MIB = 1024 * 1024


@pytest.mark.parametrize(
    ("sizes", "is_little", "is_much"),
    [
        pytest.param({}, True, False, id="no tables"),
        pytest.param({"segments/a.parquet": 2 * MIB, "logs/b.parquet": 2 * MIB}, True, False),
        pytest.param({"segments/a.parquet": 4 * MIB + 1}, False, False, id="between"),
        pytest.param({"a/1": 20 * MIB, "b/2": 12 * MIB + 1}, False, True, id="all tables together"),
        pytest.param({"_set_aside/a": 99 * MIB, "_lock": 99 * MIB}, True, False, id="no tables'"),
    ],
)
def test_tables_are_measured_by_their_files(
    sizes: dict[str, int], is_little: bool, is_much: bool, tmp_path: Path
) -> None:
    for name, size_bytes in sizes.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("wb") as stream:
            stream.truncate(size_bytes)

    assert (holds_little(str(tmp_path)), holds_much(str(tmp_path))) == (is_little, is_much)


def test_of_a_store_or_of_no_folder_nothing_is_measured(tmp_path: Path) -> None:
    assert not holds_little("s3://bucket/warehouse")
    assert not holds_much("s3://bucket/warehouse")
    assert not holds_much(str(tmp_path / "none"))


@pytest.mark.parametrize("size_bytes", [100, 5 << 20])
def test_a_large_file_of_questions_asks_much(tmp_path: Path, size_bytes: int) -> None:
    questions = tmp_path / "questions.csv"
    with questions.open("wb") as file:
        file.truncate(size_bytes)

    assert asks_much(str(questions)) == (size_bytes > 1 << 20)
    assert not asks_much(str(tmp_path / "none"))
    assert not asks_much("s3://bucket/questions.csv")
