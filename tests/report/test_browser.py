"""The report in a browser: at both widths, in light and dark, with few partitions and with most."""

import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row

from kafka_segments.verbs.tell.report.report import render_report
from support.house.ci import skip_but_in_ci
from support.verbs.wide_report import PARTITIONS, few_partitions, wide_report

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
MEASURED = Path(__file__).with_name("measured_page.html").read_text("utf-8")
OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--dump-dom"),
    "--virtual-time-budget=9000",
)
DARK, LIGHT = "0", "1"
WIDTHS = (1280, 1000, 800, 641, 390, 320)


def _measured(page: str, folder: Path, *, scheme: str) -> list[dict[str, Any]]:
    """Return what a browser finds in a page at each of the widths."""
    if CHROMIUM is None:
        skip_but_in_ci("chromium (apt-get install chromium)")
    inner = json.dumps(page).replace("<", "\\u003c")
    file = folder / "measured.html"
    file.write_text(MEASURED.replace("WIDTHS", json.dumps(WIDTHS)).replace("PAGE", inner), "utf-8")
    shown = subprocess.run(
        [
            str(CHROMIUM),
            *OPTIONS,
            f"--blink-settings=preferredColorScheme={scheme}",
            f"--user-data-dir={folder}/profile",
            file.as_uri(),
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert "CONSOLE" not in shown.stderr
    found = re.search(r'<pre id="found">(.*?)</pre>', shown.stdout)
    assert found is not None
    measured: list[dict[str, Any]] = json.loads(found[1])
    return measured


@pytest.mark.slow
@pytest.mark.parametrize(
    ("partitions", "scheme"),
    [(5, DARK), (PARTITIONS, LIGHT), pytest.param(PARTITIONS, DARK, marks=pytest.mark.long)],
    ids=["few dark", "many light", "many dark"],
)
def test_a_page_is_drawn_in_its_width_and_can_be_read(
    tmp_path: Path, partitions: int, scheme: str
) -> None:
    data = wide_report() if partitions == PARTITIONS else few_partitions(wide_report(), partitions)
    lanes = min(partitions, 40)

    measured = _measured(render_report(data), tmp_path, scheme=scheme)

    assert [found["width"] for found in measured] == list(WIDTHS)
    for found in measured:
        assert found["is_dark"] == (scheme == DARK), found
        assert found["overhang"] == 0, found["beyond"]
        assert found["lanes"] == lanes
        assert found["count"].startswith(f"1 to {lanes} of {partitions:,} partitions")
        assert found["opened"] == 60
        assert found["table"] == lanes
        assert (found["lines"], found["maps"]) == (5, 3)
        assert found["width"] < 1280 or len(set(found["map_tops"])) == 1
        assert found["faint"] == [], "text that hardly stands out from its ground"
        assert found["overlapping"] == [], "marks of an axis that cover each other"
        assert found["broken"] == [], (found["width"], "words broken though there is room")


@pytest.mark.slow
def test_a_bar_that_is_far_off_is_told_and_flattens_no_other(tmp_path: Path) -> None:
    data = few_partitions(wide_report(), 5)
    far = Row(**{**data.spans[0].asDict(), "end_ms": data.now_ms * 100})

    measured = _measured(
        render_report(replace(data, spans=[*data.spans, far])), tmp_path, scheme=LIGHT
    )

    told = "1 to 5 of 5 partitions; not wholly in the picture: 1 bar (Time: all of it)"
    assert {found["count"] for found in measured} == {told}
    assert {found["spans"] for found in measured} == {5 * 60 + 1}


def test_the_largest_page_has_less_than_two_megabytes() -> None:
    page = render_report(wide_report())

    assert 1_000_000 < len(page.encode()) < 2_000_000


@pytest.mark.slow
def test_long_tables_are_closed_and_short_ones_open() -> None:
    page, few = render_report(wide_report()), render_report(few_partitions(wide_report(), 5))

    assert page.count("<details open>") == 2  # 20 topics by age, 12 log directories
    assert few.count("<details open>") == 6


def test_numbers_of_leaders_have_their_thousands_set_apart() -> None:
    page = render_report(wide_report())

    assert '<td role="cell" data-name="leads" class="n">1,666</td>' in page


@pytest.mark.slow
def test_a_page_without_any_lane_is_drawn(tmp_path: Path) -> None:
    empty = replace(few_partitions(wide_report(), 0), copies=None)

    for found in _measured(render_report(empty), tmp_path, scheme=LIGHT):
        assert (found["overhang"], found["lanes"]) == (0, 0), found["beyond"]
        assert found["count"] == "no partition found"


CLICKED = """<script>
const made = document.querySelector("#lane-table table");
const click = (column) => made.tHead.rows[0].cells[column].firstElementChild.click();
const told = () =>
  [...made.tBodies[0].rows].map(({ cells }) => cells[0].textContent + " " + cells[3].textContent);
const seen = [told()];
for (const column of [3, 3, 0]) { click(column); seen.push(told()); }
const sorted = [...made.tHead.rows[0].cells].map((cell) => cell.getAttribute("aria-sort"));
document.body.textContent = JSON.stringify({ seen, sorted, numbers: [
  "-", "0.500 s", "59 s", "1 min 1 s", "2 h 5 min", "1 d 0 h"].map(numberOf) });
</script>"""


def test_a_table_is_ordered_by_the_heading_that_is_clicked(tmp_path: Path) -> None:
    if CHROMIUM is None:
        skip_but_in_ci("chromium (apt-get install chromium)")
    page = render_report(few_partitions(wide_report(), 5)).replace(
        '<details id="lane-table">', '<details id="lane-table" open>'
    )
    file = tmp_path / "page.html"
    file.write_text(page.replace("</body>", f"{CLICKED}</body>"), "utf-8")
    shown = subprocess.run(
        [str(CHROMIUM), *OPTIONS, f"--user-data-dir={tmp_path}/profile", file.as_uri()],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    found = re.search(r"<body>(\{.*?)</body>", shown.stdout, re.DOTALL)
    assert found is not None, shown.stderr
    told = json.loads(found[1])

    drawn, largest, least, named = told["seen"]
    assert largest[0].split(" ", 1)[1] == max((row.split(" ", 1)[1] for row in drawn), key=_bytes)
    sizes = [_bytes(row.split(" ", 1)[1]) for row in least]
    assert sizes == sorted(sizes) and sorted(least) == sorted(largest) == sorted(drawn)
    assert [row.split()[0] for row in named] == sorted(row.split()[0] for row in drawn)
    assert told["sorted"] == ["ascending", *[None] * 8]
    assert told["numbers"] == [None, 0.5, 59, 61, 7_500, 86_400]


def _bytes(text: str) -> float:
    value, unit = text.split()
    units = ("bytes", "KiB", "MiB", "GiB", "TiB")
    return float(value) * 1024 ** units.index(unit)
