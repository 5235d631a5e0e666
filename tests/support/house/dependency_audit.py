"""Audit what the lock files pin: hashes of every package, published advisories about any.

Run by `make lint`, which advisories alone do not fail: one that appears overnight has nothing to
do with the change at hand. `make audit` (``--strict``) fails on them, and where nobody can be
asked.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
LOCKS = ("requirements.lock", "airflow_dags/requirements.lock", "conf/docs/requirements.lock")
_SECONDS = 120


def main() -> int:
    """Audit every lock file; 1: something is not as it should be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--strict", action="store_true", help="advisories fail, silence too")
    is_strict = parser.parse_args().strict
    findings = [finding for lock in LOCKS for finding in _unhashed(lock)]
    advisories = [advisory for lock in LOCKS for advisory in _advisories(lock)]
    for line in (*findings, *advisories):
        print(line)
    return 1 if findings or (is_strict and advisories) else 0


def _unhashed(lock: str) -> list[str]:
    """Name the lines of a lock file that pin no version, or no hash of it."""
    text = (ROOT / lock).read_text("utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.lstrip().startswith("#")]
    loose = [line.split()[0] for line in lines if "==" not in line or "--hash=sha256:" not in line]
    return [f"{lock}: {name} has no pinned version with a hash: run `make lock`" for name in loose]


def _advisories(lock: str) -> list[str]:
    """Ask for published advisories; one line each, or one that says why nobody was asked."""
    asked = [sys.executable, "-m", "pip_audit", "--requirement", lock, "--require-hashes"]
    quiet = ["--no-deps", "--disable-pip", "--progress-spinner", "off", "--format", "json"]
    try:
        done = subprocess.run(
            [*asked, *quiet],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=_SECONDS,
        )
        dependencies = json.loads(done.stdout)["dependencies"]
    except (subprocess.TimeoutExpired, ValueError):
        return [f"{lock}: advisories were not asked for, the service does not answer"]
    unknown = sum("skip_reason" in dependency for dependency in dependencies)
    found = [
        f"{lock}: {dependency['name']} {dependency['version']}: {advisory['id']},"
        f" mended in {', '.join(advisory['fix_versions']) or 'no version yet'}"
        for dependency in dependencies
        for advisory in dependency.get("vulns", ())
    ]
    if unknown:
        found.append(
            f"{lock}: no advisories to be had for {unknown} of {len(dependencies)} packages"
        )
    return found


if __name__ == "__main__":
    sys.exit(main())
