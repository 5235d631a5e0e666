"""``lag --output prometheus``: sums of a group's partitions, none where one is not known."""

import pytest
from pyspark.sql import SparkSession

from kafka_segments.console.prometheus import text_format
from kafka_segments.verbs.find.lag.report_figures import figures_of, share_figures_of
from support.spark.rows_of import rows_of
from support.verbs.figures import read_figures

pytestmark = pytest.mark.usefixtures("few")

COLUMNS = (
    "cluster string, group_id string, topic string, partition int, status string,"
    " offset_lag long, time_lag_ms long, gone_offsets long"
)
MOST = 2**63 - 1
HOSTILE = ('g"} 1\nx', "\\n", "\u202et")


def _read(spark: SparkSession, *rows: tuple) -> dict[str, dict[tuple[str, ...], float | None]]:
    return read_figures(text_format(figures_of(rows_of(spark, rows, COLUMNS))))


def test_partitions_are_summed_and_the_latest_one_counts(spark: SparkSession) -> None:
    read = _read(
        spark,
        ("c", "g", "t", 0, "behind", 3, 1_500, 0),
        ("c", "g", "t", 1, "unread records deleted", 4, 500, 2),
        ("c", "g", "t", 2, "up to date", 0, 0, 0),
    )

    key = ("c", "g", "t")
    assert read == {
        "lag_partitions": {key: 3},
        "lag_partitions_to_look_at": {key: 1},
        "lag_offsets": {key: 7},
        "lag_gone_offsets": {key: 2},
        "lag_time_max_seconds": {key: 1.5},
    }


def test_one_partition_that_is_not_known_leaves_no_sum(spark: SparkSession) -> None:
    read = _read(
        spark,
        ("c", "g", "t", 0, "behind", 3, 1_500, 0),
        ("c", "g", "t", 1, "not known", None, None, None),
        ("c", "g", "u", 0, "behind", 1, None, 0),
        ("c", None, None, None, "not readable", None, None, None),
    )

    assert read["lag_offsets"] == {("c", "g", "t"): None, ("c", "g", "u"): 1, ("c", "", ""): None}
    assert set(read["lag_time_max_seconds"].values()) == {None}
    assert read["lag_gone_offsets"]["c", "g", "t"] is None
    unread = ("c", "g", "t", 0, "not readable", 3, None, None)
    assert _read(spark, unread)["lag_gone_offsets"] == {unread[:3]: None}
    assert read["lag_partitions_to_look_at"]["c", "", ""] == 1


def test_a_sum_beyond_64_bits_is_not_known(spark: SparkSession) -> None:
    rows = [("c", "g", "t", number, "behind", MOST, 1, 0) for number in (0, 1)]

    assert _read(spark, *rows)["lag_offsets"] == {("c", "g", "t"): None}


def test_hostile_names_are_labels(spark: SparkSession) -> None:
    rows = [("c", name, name, 0, "up to date", 0, 0, 0) for name in HOSTILE]

    assert set(_read(spark, *rows)["lag_offsets"]) == {("c", name, name) for name in HOSTILE}


def test_share_groups_have_figures_of_what_they_have_begun(spark: SparkSession) -> None:
    rows = [
        ("c", "g", "t", 0, "behind", 3, None, None),
        ("c", "g", "t", 1, "up to date", 0, None, None),
        ("c", "g", "t", 2, "nothing read yet", None, None, None),
        ("c", "g", "u", 0, "nothing read yet", None, None, None),
        ("c", "g", "v", 0, "behind", 3, None, None),
        ("c", "g", "v", 1, "not known", None, None, None),
        ("c", "g", "w", 0, "unread records deleted", 7, None, None),
        ("c", "g", "w", 1, "no log in the tables", None, None, None),
    ]
    read = read_figures(text_format(share_figures_of(rows_of(spark, rows, COLUMNS))))

    def of_topics(*values: int | None) -> dict[tuple[str, ...], int | None]:
        return dict(zip([("c", "g", topic) for topic in "tuvw"], values, strict=True))

    assert read == {
        "share_lag_partitions": of_topics(3, 1, 2, 2),
        "share_lag_partitions_not_begun": of_topics(1, 1, 0, 0),
        "share_lag_partitions_to_look_at": of_topics(0, 0, 1, 2),
        "share_lag_offsets": {("c", "g", "t"): 3, ("c", "g", "v"): None, ("c", "g", "w"): None},
    }
