"""What each store can do, by its URI and by its file system."""

import pytest
from pyarrow import fs

from kafka_segments.files.storage.files import place
from kafka_segments.files.storage.stores import (
    STORES,
    Store,
    by_usual_scheme,
    store_behind,
    store_of,
)


@pytest.mark.parametrize(
    ("uri", "able"),
    [
        ("/data/logs", {"is_local", "has_locks", "has_folders", "lists_folders"}),
        ("relative", {"is_local", "has_locks", "has_folders", "lists_folders"}),
        ("s3a://b/x", {"lists_folders", "uploads_whole", "authority_is_bucket"}),
        ("gs://b/x", {"uploads_whole"}),
        ("abfss://b@a/x", {"lists_folders", "replaces_when_moved"}),
        ("hdfs://n/x", {"has_folders", "lists_folders"}),
        ("webhdfs://n/x", {"has_folders", "lists_folders", "replaces_when_moved"}),
        ("unheard-of://n/x", {"has_folders", "lists_folders"}),
        ("file:///data/logs", {"has_folders", "lists_folders"}),
    ],
)
def test_a_uri_tells_what_its_store_can_do(uri, able):
    store = store_of(uri)

    found = {name for name in Store.__dataclass_fields__ if getattr(store, name) is True}

    assert found == able


def test_a_place_is_in_the_store_that_its_uri_names(tmp_path):
    assert place(str(tmp_path)).store is store_of(str(tmp_path))
    assert place("webhdfs://n/x").store is store_of("webhdfs://n/x")
    other = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    assert store_behind(other) is store_of("unheard-of://x")


def test_no_two_stores_share_a_scheme_or_a_file_system():
    schemes = [scheme for store in STORES for scheme in store.schemes]

    assert len(set(schemes)) == len(schemes)
    assert len({store.filesystem for store in STORES}) == len(STORES)


@pytest.mark.parametrize(
    ("uri", "usual"),
    [
        ("s3a://b/x/", "s3://b/x/"),
        ("s3n://b", "s3://b"),
        ("gcs://b/x", "gs://b/x"),
        ("viewfs://c/x", "viewfs://c/x"),
        ("/s3a/x", "/s3a/x"),
        ("unheard-of://b/x", "unheard-of://b/x"),
    ],
)
def test_uris_of_one_place_are_one_uri(uri, usual):
    assert by_usual_scheme(uri) == usual
