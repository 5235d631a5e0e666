"""What `make mutants` changes, and the reasons for the mutants that are left alive."""

from pathlib import Path

import pytest

from mutants.__main__ import ACCEPTED, ROOT, _reasons, _report_groups, _report_reasons
from mutants.operators import mutants_of
from mutants.reach import Reach, Sources

SOURCE = '''"""A module."""
LIMIT = 7

@njit
def inner(x: int = 3) -> int:
    return x

def outer(a, b):
    """Give 1."""
    if a < b and not b:
        raise ValueError(f"{a + 1}")
    a += 1
    return min(a, b) * 2
'''


@pytest.fixture
def package(tmp_path: Path) -> Path:
    (tmp_path / "kafka" / "wire").mkdir(parents=True)
    (tmp_path / "kafka" / "wire" / "one.py").write_text(SOURCE)
    (tmp_path / "kafka" / "wire" / "two.py").write_text(
        "from kafka_segments.kafka.wire.one import LIMIT, inner\n\n"
        "def user(x):\n    return inner(x)\n"
    )
    return tmp_path


def test_what_has_an_effect_is_changed_and_nothing_else(package: Path) -> None:
    found = {
        (m.line, m.after) for m in mutants_of(package, ("wire",)) if m.path == "kafka/wire/one.py"
    }

    assert found == {
        (2, "LIMIT = 6"),
        (5, "def inner(x: int = 2) -> int:"),
        (6, "return None"),
        (10, "if not (a < b and (not b)):"),
        (10, "if (a < b or not b):"),
        (10, "if (a <= b) and not b:"),
        (10, "if a < b and (b):"),
        (12, "pass"),
        (12, "a += 0"),
        (13, "return None"),
        (13, "return (min(a, b) // 2)"),
        (13, "return max(a, b) * 2"),
        (13, "return min(a, b) * 3"),
    }


def test_a_change_is_of_its_place_alone_and_its_name_outlives_others(package: Path) -> None:
    path = package / "kafka" / "wire" / "one.py"
    before = {m.key: m for m in mutants_of(package, ("wire",))}

    path.write_text("# é\n" + SOURCE.replace("LIMIT = 7", "LIMIT = 9"))
    after = {m.key: m for m in mutants_of(package, ("wire",))}

    assert {key[2] for key in before.keys() ^ after.keys()} == {"LIMIT = 7", "LIMIT = 9"}
    changed = next(m for m in after.values() if m.after == "a += 0").applied(path.read_bytes())
    assert changed.decode() == path.read_text().replace("a += 1", "a += 0")


def test_who_is_seen_to_run_a_compiled_function(package: Path) -> None:
    sources = Sources(package)

    assert sources.that_run("kafka/wire/one.py", "inner") == {"kafka/wire/two.py:user"}
    assert sources.that_run("kafka/wire/one.py", "outer") == {"kafka/wire/one.py:outer"}
    importers = {"kafka/wire/one.py:outer", "kafka/wire/two.py:user"}
    assert sources.that_run("kafka/wire/one.py", "") == {"kafka/wire/one.py:", *importers}
    assert sources.compiled_with("kafka/wire/two.py") == set()
    assert sources.compiled_with("kafka/wire/one.py") == {"kafka/wire/one.py"}


def test_all_that_emits_code_runs_with_who_is_compiled_with_it(package: Path) -> None:
    (package / "kafka" / "wire" / "three.py").write_text(
        "@intrinsic\ndef load(array):\n    def codegen():\n        return Folder().fold()\n"
        "    return codegen\n\n"
        "class Folder:\n    def __init__(self):\n        self.at = 1\n\n"
        "    def fold(self):\n        return self.at\n"
    )
    (package / "kafka" / "wire" / "four.py").write_text(
        "from kafka_segments.kafka.wire.three import load\n\n"
        "@njit\ndef reads(x):\n    return load(x)\n\ndef caller(x):\n    return reads(x)\n"
    )

    sources = Sources(package)

    for function in ("load", "load.codegen", "Folder.__init__", "Folder.fold"):
        assert f"kafka/wire/three.py:{function}" in sources.compiled
        assert sources.that_run("kafka/wire/three.py", function) == {"kafka/wire/four.py:caller"}
    assert sources.compiled_with("kafka/wire/three.py") == {
        "kafka/wire/three.py",
        "kafka/wire/four.py",
    }


def test_the_table_tells_what_became_of_each_group(
    package: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two, three, four, *_ = mutants_of(package, ("wire",))
    outcomes = {one: "killed", two: "timeout", three: "survived", four: "no test"}
    reasons = {three.change: "it may"}

    assert _report_groups(outcomes, reasons)
    assert _report_reasons(outcomes, reasons, {one.change, three.change, four.change})
    assert not _report_groups({one: "killed"}, reasons)
    assert not _report_reasons({one: "killed", three: "survived"}, reasons, {three.change})

    printed = capsys.readouterr().out.splitlines()
    assert "wire           4       2         1     1            50.0%" in printed
    assert f"    no reason is given, in {four.function}" in printed


def test_cheap_tests_come_first_up_to_a_sum_of_time() -> None:
    reach = Reach()
    facts = {"passed": True, "runs": ["f"], "setup": 0.0}
    tests = {"a::slow": facts | {"call": 9.0}, "a::quick": facts | {"call": 1.0}}
    reach.add({"tests": tests, "prepared": []})
    started = {"passed": True, "runs": [], "setup": 5.0, "call": 0.5}
    reach.add({"tests": {"b::uses": started}, "prepared": ["f"]})

    assert reach.tests({"f"}, seconds=99) == ["a::quick", "a::slow", "b::uses"]
    assert reach.tests({"f"}, seconds=7) == ["a::quick", "b::uses"]
    assert reach.tests({"f"}, seconds=0.1) == ["a::quick"]
    assert reach.tests({"g"}, seconds=99) == []


def test_every_reason_has_its_mutant() -> None:
    existing = {mutant.change for mutant in mutants_of(ROOT / "lib" / "kafka_segments")}

    assert _reasons().keys() <= existing, f"remove what is not there any more from {ACCEPTED}"
