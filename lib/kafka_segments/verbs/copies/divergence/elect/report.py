"""What ``divergence elect`` prints."""

from collections.abc import Iterator, Sequence

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from kafka_segments.console.lines import print_line, say
from kafka_segments.console.table_form import or_dash
from kafka_segments.console.tables import print_result
from kafka_segments.engine.frames.local_rows import stream_rows
from kafka_segments.kafka.text.plain_text import first_of
from kafka_segments.verbs.copies.divergence.elect.decide.elections import Way
from kafka_segments.verbs.copies.divergence.elect.election_commands import Chosen, election_script
from kafka_segments.verbs.copies.divergence.elect.run import Elections

COMMANDS = "commands"
_LOG = ("topic", "partition")
_LOSSES = ("broker_id", "lost_acks_all_records", "lost_records")
_NAMED = 20
_NAMES = (
    *("log", "rank>", "broker>", "in", "ends>", "lost, acks=1>", "lost, acks=all>"),
    *("lost, committed>", "torn>", "damage>", "how it leads"),
)


def print_elect(found: Elections, output: str) -> int:
    """Print the candidates or the commands; return how many partitions someone must look at.

    A table leaves out partitions of which all replicas are at hand, and that lose nothing whichever
    leads.
    """
    is_unread = F.size("absent") > 0
    loses = (F.col("lost_records") > 0) | (F.col("damages") > 0) | is_unread
    needs_look = (F.col("lost_acks_all_records") > 0) | (F.col("damages") > 0)
    needs_look = needs_look | (F.col("way") != Way.BY_ITSELF.value) | is_unread
    best = found.rows.where("rank = 1")
    counted = best.agg(
        F.count_if(needs_look).alias("findings"),
        *(F.sum(f"lost_{of}records").alias(f"{of}lost") for of in ("", "acks_all_", "committed_")),
    ).collect()[0]
    absent = [f"{row['topic']}-{row['partition']}" for row in found.absent.orderBy(*_LOG).collect()]
    if output == COMMANDS:
        brokers = [row["broker_id"] for row in found.rows.select("broker_id").distinct().collect()]
        losses = found.rows.groupBy(*_LOG).agg(F.collect_list(F.struct(*_LOSSES)).alias("losses"))
        planned = best.join(losses, list(_LOG), how="inner").orderBy(*_LOG)
        for line in election_script(map(_chosen, stream_rows(planned)), brokers, absent):
            print_line(line)
    elif output == "table":
        told = found.rows.where(loses | (F.col("way") != Way.BY_ITSELF.value)).select(*_LOG)
        if not told.isEmpty():
            shown = found.rows.join(told.distinct(), list(_LOG), how="left_semi")
            print_result(shown.orderBy(*_LOG, "rank"), output, names=_NAMES, cells=_cells)
    else:
        ordered = found.rows.orderBy(*_LOG, "rank")
        print_result(ordered, output, names=_NAMES, cells=_cells)
    unread = list(_unread(best))
    summary = _summary(found, counted, len(absent), is_whole=not (absent or unread))
    for line in (*_left_out(found), *_absent(absent), *unread, summary):
        say(line)
    return int(counted["findings"]) + len(absent)


def _chosen(row: Row) -> Chosen:
    losses = {broker: (all_acks, records) for broker, all_acks, records in row["losses"]}
    named = {name: row[name] for name in Chosen._fields}
    return Chosen(**{**named, "losses": losses})


def _left_out(found: Elections) -> Iterator[str]:
    """Name the first of the copies that are not used, and say why."""
    rows = found.left_out.orderBy(*_LOG, "copy").collect()
    for row in rows[:_NAMED]:
        log = f"{row['topic']}-{row['partition']}"
        yield f"{log} of copy {row['copy']} is left out: {row['reason']}"
    if len(rows) > _NAMED:
        yield f"{len(rows) - _NAMED} more copies are left out"


def _absent(partitions: Sequence[str]) -> Iterator[str]:
    if partitions:
        yield (
            f"no copy that can be used is at hand of {first_of(partitions, _NAMED)}: what is lost"
            " there is not known"
        )


def _unread(best: DataFrame) -> Iterator[str]:
    """Name the brokers whose replicas are not at hand, and say what is not known without them."""
    name = F.concat_ws("-", "topic", F.col("partition").cast("string"))
    of_brokers = best.select(F.explode("absent").alias("broker_id"), name.alias("log"))
    logs = of_brokers.groupBy("broker_id").agg(F.sort_array(F.collect_list("log")).alias("logs"))
    for broker, names in logs.orderBy("broker_id").collect():
        yield (
            f"broker {broker}: no copy that can be used is at hand of its replicas of"
            f" {first_of(names, _NAMED)}: records that it alone holds are not counted, and whether"
            " less is lost if it leads is not known"
        )


def _summary(found: Elections, counted: Row, absent: int, *, is_whole: bool) -> str:
    lost = [counted[name] or 0 for name in ("lost", "acks_all_lost", "committed_lost")]
    bound = "" if is_whole else "as far as the copies at hand tell, "
    return (
        f"{found.partitions} partitions; {bound}with the best replicas {lost[0]} records are lost,"
        f" acks=all may have acknowledged {lost[1]}, {lost[2]} lie below a high watermark;"
        f" partitions to look at: {counted['findings'] + absent}"
    )


def _cells(row: Row) -> tuple[str, ...]:
    membership = "ISR" if row["is_in_isr"] else "ELR" if row["is_in_elr"] else "-"
    return (
        f"{row['topic']}-{row['partition']}",
        str(row["rank"]),
        str(row["broker_id"]),
        membership,
        or_dash(row["end_offset"]),
        *(str(row[f"lost_{of}records"]) for of in ("", "acks_all_", "committed_")),
        str(row["torn_transactions"]),
        str(row["damages"]),
        _words(row) if row["rank"] == 1 else "-",
    )


def _words(row: Row) -> str:
    said = [row["way"]]
    if row["hold_back"]:
        said.append(f"keep {' '.join(map(str, row['hold_back']))} stopped until it leads")
    if row["replicas"]:
        said.append(f"replicas {' '.join(map(str, row['replicas']))} first")
    if row["absent"]:
        said.append(f"no copy of {' '.join(map(str, row['absent']))}")
    return "; ".join(said)
