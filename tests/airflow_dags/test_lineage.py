"""How OpenLineage names what jobs read and write: without Airflow."""

import importlib.util

import pytest

from support.house.local_airflow import ROOT

_SPEC = importlib.util.spec_from_file_location(
    "kafka_segments_lineage", ROOT / "airflow_dags" / "kafka_segments_lineage.py"
)
assert _SPEC is not None and _SPEC.loader is not None
lineage = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(lineage)


@pytest.mark.parametrize(
    ("uri", "namespace", "name"),
    [
        ("/data/kafka-logs/", "file", "/data/kafka-logs"),
        ("/", "file", "/"),
        ("file:///data/a", "file", "/data/a"),
        ("s3://bucket/logs/a", "s3://bucket", "logs/a"),
        ("s3a://bucket/logs/", "s3://bucket", "logs"),
        ("s3a://bucket", "s3://bucket", "/"),
        ("s3a://key:secret@bucket/logs", "s3://bucket", "logs"),
        ("gs://bucket/logs", "gs://bucket", "logs"),
        ("hdfs://name:8020/logs", "hdfs://name:8020", "/logs"),
        (
            "abfss://c@account.dfs.core.windows.net/l",
            "abfss://c@account.dfs.core.windows.net",
            "/l",
        ),
    ],
)
def test_a_place_has_the_name_that_sparks_integration_gives_it(
    uri: str, namespace: str, name: str
) -> None:
    assert lineage.dataset_of(uri) == (namespace, name)


def test_a_job_without_tables_and_places_has_none() -> None:
    assert lineage.datasets({"now-ms": "1"}, (), ()) == ([], [])
