"""Spark's settings for S3 follow the variables that AWS's own tools read."""

import pytest

from kafka_segments.console.options import describe_failure
from kafka_segments.engine.spark.session import s3_settings

VARIABLES = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION")
PATIENCE = {
    "spark.hadoop.fs.s3a.attempts.maximum": "3",
    "spark.hadoop.fs.s3a.retry.limit": "3",
    "spark.hadoop.fs.s3a.connection.establish.timeout": "10s",
    "spark.hadoop.fs.s3a.connection.timeout": "30s",
    "spark.hadoop.fs.s3a.input.stream.type": "classic",
    "spark.hadoop.parquet.hadoop.vectored.io.enabled": "false",
}
HERE = {
    "spark.hadoop.fs.s3a.endpoint": "http://here:9000",
    "spark.hadoop.fs.s3a.path.style.access": "true",
}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({}, {}, id="AWS itself"),
        pytest.param(
            {"AWS_DEFAULT_REGION": "eu-west-1"},
            {"spark.hadoop.fs.s3a.endpoint.region": "eu-west-1"},
            id="a region",
        ),
        pytest.param(
            {"AWS_ENDPOINT_URL": "http://there", "AWS_ENDPOINT_URL_S3": "http://here:9000"},
            {**HERE, "spark.hadoop.fs.s3a.endpoint.region": "us-east-1"},
            id="another server",
        ),
    ],
)
def test_endpoint_and_region_come_from_the_environment_and_no_keys(monkeypatch, given, expected):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    for name, value in given.items():
        monkeypatch.setenv(name, value)

    s3a = {"spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem", **PATIENCE}
    assert s3_settings() == s3a | expected


def test_a_spark_without_the_jars_says_how_to_get_them():
    error = RuntimeError("Class org.apache.hadoop.fs.s3a.S3AFileSystem not found")

    assert describe_failure(error).startswith("Spark has no JARs for tables on S3: run `make jars")


def test_an_answer_that_broke_off_is_told_with_its_object_and_what_to_do():
    cause = (
        "org.apache.http.ConnectionClosedException: Premature end of Content-Length (expected: 9)"
    )
    error = RuntimeError(
        "An error occurred while calling o95.collectToPython.\n: org.apache.spark.SparkException:"
        " [FAILED_READ_FILE.NO_HINT] Encountered error while reading file s3a://cut/t/x.parquet. "
        f" SQLSTATE: KD001\n\tat scala.Option\nCaused by: {cause}\n"
    )

    told = describe_failure(error)

    assert told.startswith(
        f"s3a://cut/t/x.parquet: the store's answers broke off or did not come ({cause}): run it"
        " again; "
    )
    assert "\n" not in told
