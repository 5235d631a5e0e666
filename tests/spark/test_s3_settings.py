"""Spark's settings for S3 follow the variables that AWS's own tools read."""

import pytest

from kafka_segments.console.options import describe_failure
from kafka_segments.spark.session import s3_settings

VARIABLES = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION")
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

    s3a = {"spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem"}
    assert s3_settings() == s3a | expected


def test_a_spark_without_the_jars_says_how_to_get_them():
    error = RuntimeError("Class org.apache.hadoop.fs.s3a.S3AFileSystem not found")

    assert describe_failure(error).startswith("Spark has no JARs for tables on S3: run `make jars")
