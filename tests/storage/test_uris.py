"""Paths and URIs below folders."""

import pytest

from kafka_segments.files.storage.uris import lies_in, split_below


@pytest.mark.parametrize(
    ("path", "folder", "expected"),
    [
        ("/a", "/a", True),
        ("/a/b/c", "/a", True),
        ("/ab", "/a", False),
        ("/a", "/a/b", False),
        ("/a", "/a/", True),
        ("/a/b", "/a/", True),
        ("/a", "/", True),
        ("s3://b/a", "s3://b", True),
        ("s3://bc/a", "s3://b", False),
    ],
)
def test_a_path_lies_in_a_folder_whose_name_it_goes_on_from(
    path: str, folder: str, expected: bool
) -> None:
    assert lies_in(path, folder) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/a/b/t-0", ("/a/b", "t-0")),
        ("/a/t-0/x", ("/a", "t-0/x")),
        ("/a", ("/a", "")),
        ("/ab/t-0", ("/", "ab/t-0")),
    ],
)
def test_a_path_is_split_below_the_first_folder_that_it_lies_in(
    path: str, expected: tuple[str, str]
) -> None:
    assert split_below(path, ["/a/b", "/a", "/"]) == expected


def test_a_path_that_lies_in_no_folder_is_an_error() -> None:
    with pytest.raises(ValueError, match="/c/t-0 lies in none of /a, /b"):
        split_below("/c/t-0", ("/a", "/b"))
