"""The DAG files and their operator, loaded by Airflow alone."""

import json
import subprocess
from pathlib import Path
from typing import Any

from local_airflow import PYTHON, ROOT

_LOAD = """
import json, sys
from importlib.abc import MetaPathFinder

class Refused(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pyspark", "delta", "kafka_segments", "great_expectations"):
            raise ImportError(f"{name} is imported while DAGs are parsed")

sys.meta_path.insert(0, Refused())
sys.path.insert(0, sys.argv[1])
from airflow.dag_processing.dagbag import DagBag
bag = DagBag(sys.argv[1])
print(json.dumps([sorted(bag.dags), bag.import_errors]))
"""

_ENDINGS = """
import json, sys
sys.path.insert(0, sys.argv[1])
from airflow.sdk.exceptions import AirflowException
from kafka_segments_job import KafkaSegmentsJob

def ending(failure, **more):
    job = KafkaSegmentsJob(task_id="t", job="j", options={}, **more)
    try:
        job._ended(failure)
    except AirflowException as error:
        return [type(error).__name__, str(error)]
    return None

print(json.dumps([ending(text, **more) for text, more in json.loads(sys.argv[2])]))
"""


def _in_airflow(script: str, *arguments: str, folder: Path) -> Any:
    done = subprocess.run(
        [PYTHON, "-c", script, *arguments],
        env={"AIRFLOW_HOME": str(folder), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_dags_load_without_spark_and_without_the_package(tmp_path: Path) -> None:
    dags, errors = _in_airflow(_LOAD, str(ROOT / "airflow_dags"), folder=tmp_path)

    assert errors == {}
    assert dags == [
        f"kafka_segments_{name}" for name in ("migration", "rebuild", "retention", "upkeep")
    ]


def test_an_exit_status_becomes_an_end_with_its_reason_in_one_line(tmp_path: Path) -> None:
    def failed(status: int, *lines: str) -> str:
        return "\n".join([f"Cannot execute: …. Error code is: {status}.", "Last output:", *lines])

    endings = _in_airflow(
        _ENDINGS,
        str(ROOT / "airflow_dags"),
        json.dumps(
            [
                (failed(1, "2 segments are damaged"), {}),
                (failed(1, "2 expectations failed"), {"fails_on_findings": True}),
                (failed(2, "kafka-segments: --source /x: not there", "exited with 2"), {}),
                (failed(2, "Usage: …", "Error: No such option '--x'."), {}),
                (failed(3, "kafka-segments: disk full", "Exception in thread main"), {}),
                (failed(1, "kafka-segments: x", "  "), {}),
                (failed(-9, 'Exception in thread "main" a.b.OutOfMemoryError: heap'), {}),
                (failed(137, "Killed"), {}),
            ]
        ),
        folder=tmp_path,
    )

    assert endings == [
        None,
        ["AirflowFailException", "findings: see the lines above"],
        ["AirflowFailException", "--source /x: not there"],
        ["AirflowFailException", "No such option '--x'."],
        ["AirflowException", "disk full"],
        None,
        ["AirflowException", "a.b.OutOfMemoryError: heap"],
        ["AirflowException", "Killed"],
    ]
