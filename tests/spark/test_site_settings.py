"""What a site sets for Spark: set over where our queries depend on it, else named."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kafka_segments.engine.spark.site_settings import (
    MEANING,
    WITHOUT_STRANGERS,
    defaults_file,
    site_error,
    standing_against,
)
from support.spark.ready_builds import ReadyBuild

DOCS = Path(__file__).resolve().parents[2] / "docs" / "clusters.md"
SITE = """# of the site
spark.extraListeners io.openlineage.spark.agent.OpenLineageSparkListener
spark.sql.catalog.lake org.apache.iceberg.spark.SparkCatalog
spark.sql.defaultCatalog=lake
spark.sql.timestampType: TIMESTAMP_NTZ
spark.eventLog.enabled true
spark.eventLog.dir /nowhere/events
spark.submit.deployMode cluster
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "conf").mkdir()
    file = tmp_path / "conf" / "spark-defaults.conf"
    file.write_text(SITE, "utf-8")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path / "conf"))
    return file


def test_a_failure_that_tells_of_a_setting_names_its_key_and_file(site: Path) -> None:
    assert defaults_file() == site
    said = "java.lang.ClassNotFoundException: org.apache.iceberg.spark.SparkCatalog\n at x"

    error = site_error(f"An error occurred\n{said}")

    assert str(error).startswith(
        f"spark.sql.catalog.lake in {site} is org.apache.iceberg.spark.SparkCatalog, which does not"
        " work here: take it out, or set SPARK_CONF_DIR to a folder without it (java.lang.Class"
    )
    assert site_error("java.io.IOException: No space left") is None
    ours = "ClassNotFoundException: io.openlineage.spark.agent.OpenLineageSparkListener"
    assert site_error(ours) is None  # which is set over


def test_what_a_users_session_sets_otherwise_is_named() -> None:
    held = dict.fromkeys(MEANING, "other") | {"spark.sql.caseSensitive": "FALSE", "spark.x": "y"}

    found = standing_against(held)

    assert standing_against({}) == standing_against(MEANING) == []
    assert "spark.sql.timestampType is other (TIMESTAMP_LTZ is meant)" in found
    assert not any("timeZone" in line or "caseSensitive" in line for line in found)


def test_without_a_file_of_the_site_nothing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))

    assert defaults_file() is None
    assert site_error("org.apache.iceberg.spark.SparkCatalog") is None


def test_the_docs_list_what_a_local_session_sets_over() -> None:
    text = DOCS.read_text("utf-8")

    assert [key for key in MEANING | WITHOUT_STRANGERS if f"`{key}`" not in text] == []


@pytest.mark.slow
@pytest.mark.spark
def test_a_local_session_answers_under_the_settings_of_a_site(
    site: Path, broker_build: ReadyBuild
) -> None:
    query = (
        "SELECT count(*) AS counted FROM segments WHERE largest_timestamp >= TIMESTAMP '1971-01-01'"
    )
    words = ["sql", query, "--warehouse", str(broker_build.warehouse), "--output", "csv"]
    other = {"SPARK_CONF_DIR": str(site.parent), "PYSPARK_PYTHON": "/opt/python3.9/bin/python3"}

    done = subprocess.run(
        [sys.executable, "-m", "kafka_segments", *words],
        env={**os.environ, **other},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (0, "counted\n24\n"), done.stderr
