"""The main path on executors of their own, the package shipped as a user would ship it."""

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """The zip that ``make build`` makes for --py-files."""
    archive = tmp_path / "kafka_segments.zip"
    with zipfile.ZipFile(archive, "w") as package:
        for file in sorted((ROOT / "lib" / "kafka_segments").rglob("*")):
            if file.suffix in (".py", ".properties"):
                package.write(file, file.relative_to(ROOT / "lib"))
        for file in sorted((ROOT / "schemas").glob("*.json")):
            package.write(file, f"kafka_segments/schemas/{file.name}")
    return archive


@pytest.fixture
def other_python(tmp_path: Path) -> Path:
    """An interpreter that has the dependencies, but not the package on its own path."""
    folder = tmp_path / "python"
    venv.create(folder, symlinks=True, with_pip=False)
    found = sorted(folder.glob("lib/python*/site-packages"))
    packages = Path(next(path for path in sys.path if path.endswith("site-packages")))
    for entry in packages.iterdir():
        if "kafka_segments" not in entry.name and "editable" not in entry.name:
            (found[0] / entry.name).symlink_to(entry)
    return folder / "bin" / "python"


def test_spark_submit_to_separate_executors_gives_the_brokers_files(
    broker: Path, package: Path, other_python: Path, tmp_path: Path
) -> None:
    source = broker / "logs"
    jars = ",".join(map(str, sorted((ROOT / "jars" / "delta").glob("*.jar"))))
    python_path = os.environ | {
        "PYSPARK_PYTHON": str(other_python),
        "PYSPARK_DRIVER_PYTHON": str(other_python),
    }
    python_path.pop("PYTHONPATH", None)

    done = subprocess.run(
        [
            str(Path(sys.executable).with_name("spark-submit")),
            "--master",
            "local-cluster[2,1,1024]",
            "--jars",
            jars,
            "--py-files",
            str(package),
            "--conf",
            "spark.ui.enabled=false",
            "--conf",
            "spark.sql.shuffle.partitions=2",
            str(ROOT / "jobs" / "build_indexes.py"),
            "--source",
            str(source),
            "--warehouse",
            "warehouse",
            "--index-dir",
            "indexes",
            "--output",
            "csv",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env=python_path,
    )

    assert done.returncode == 0, done.stderr[-3000:]
    written = {
        str(file.relative_to(tmp_path / "indexes")): file.read_bytes()
        for file in (tmp_path / "indexes").rglob("*index")
    }
    rebuilt = {
        str(file.relative_to(broker / "rebuilt")): file.read_bytes()
        for file in (broker / "rebuilt").rglob("*")
        if file.suffix in (".index", ".timeindex", ".txnindex")
    }
    assert written == rebuilt
    rows = [line for line in done.stdout.splitlines() if f",{source}," in line]
    assert len(rows) == 24
