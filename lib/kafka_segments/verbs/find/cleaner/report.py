"""What ``cleaner`` prints."""

from collections.abc import Iterator, Sequence
from typing import Any

from kafka_segments.console.lines import print_dicts
from kafka_segments.console.not_known import say_not_known
from kafka_segments.console.output import MOST_ROWS_SHOWN, cell, console, print_text, size_text
from kafka_segments.console.prometheus import PROMETHEUS, give_figures
from kafka_segments.console.table_form import made_table, print_table
from kafka_segments.kafka.broker_rules.cleaner.outcome import LogPass
from kafka_segments.kafka.text.plain_text import node_in_words
from kafka_segments.verbs.find.cleaner.decide import FOR_A_PERSON, LogKey, LogStand, Stand
from kafka_segments.verbs.find.cleaner.log_summary import log_summary
from kafka_segments.verbs.find.cleaner.report_figures import count_unknown, figures_of
from kafka_segments.verbs.find.cleaner.run import NodeStands

_ORDER = {stand: number for number, stand in enumerate((*FOR_A_PERSON, *Stand))}


def print_cleaner(nodes: Sequence[NodeStands], output: str, *, in_words: bool = False) -> int:
    """Print where logs stand; return how many are for a person, what is not known included.

    ``in_words``: each in lines of its own.
    """
    if output == "table" and in_words:
        for node in nodes:
            for key, one in node.stands.items():
                for line in log_summary(key, one):
                    print_text(line)
    elif output == "table":
        for node in nodes:
            _print_node(node)
    elif output == PROMETHEUS:
        give_figures(
            (figure for node in nodes for figure in figures_of(node)),
            findings=count_findings(nodes),
            unknowns=sum(map(count_unknown, nodes)),
        )
    else:
        print_dicts((row for node in nodes for row in rows_of(node)), output)
    for node in nodes:
        for line in node.not_known:
            say_not_known(f"not known: {line}")
    return count_findings(nodes)


def count_findings(nodes: Sequence[NodeStands]) -> int:
    """Return how many logs and lines are for a person."""
    return sum(
        len(node.not_known) + sum(one.is_finding for one in node.stands.values()) for node in nodes
    )


def rows_of(node: NodeStands) -> Iterator[dict[str, Any]]:
    """Yield a row for each compacted log; None: not known."""
    for (log_dir, folder), one in node.stands.items():
        log, found, config = one.log, one.found, one.config
        yield {
            "cluster": node.cluster,
            "broker_id": node.node_id,
            "log_dir": log_dir,
            "folder": folder,
            "stand": one.stand.value,
            "why": one.why,
            "checkpoint": None if log is None else log.checkpoint,
            "checkpoint_state": None if found is None else found.checkpoint.value,
            "log_start_offset": None if log is None else log.start,
            "end_offset": None if log is None else log.end,
            "high_watermark": None if log is None else log.high_watermark,
            "first_unstable_offset": None if log is None else log.first_unstable,
            "first_dirty_offset": None if found is None else found.first_dirty,
            "until_offset": None if found is None else found.until,
            "until_because": None if found is None else found.bound.value,
            "clean_bytes": None if found is None else found.clean_bytes,
            "cleanable_bytes": None if found is None else found.cleanable_bytes,
            "dirty_bytes": None if found is None else found.dirty_bytes,
            "dirty_ratio": None if found is None else round(found.ratio, 6),
            "overdue_ms": None if found is None else found.overdue_ms,
            "most_passes": one.most_passes,
            "cleanup_policy": None if one.policy is None else one.policy.value,
            "cleanup_policy_set_at": None if one.policy is None else one.policy.set_at,
            **_foretold_columns(one.foretold),
            **config._asdict(),
        }


def _foretold_columns(foretold: LogPass | None) -> dict[str, Any]:
    """Return what a pass would make of a log; None: not asked, none is made, or not known."""
    counts = None if foretold is None else foretold.counts
    columns: dict[str, Any] = {
        "pass_clean_until": None if foretold is None else foretold.clean_until,
        "pass_freed_bytes": None if foretold is None else foretold.freed_bytes,
        "pass_error_bytes": None,
        "pass_estimated_bytes": None,
        "pass_records_removed": None,
        "pass_records_kept": None,
        "pass_null_keys": None,
        "pass_tombstones_kept": None,
        "pass_markers_removed": None,
        "pass_markers_kept": None,
        "pass_next_horizon_ms": None,
    }
    if foretold is not None and foretold.unread is not None:
        return columns | {"pass_error_bytes": foretold.unread.error_bytes}
    if counts is not None:
        columns |= {
            "pass_error_bytes": 0,
            "pass_estimated_bytes": counts.estimated_bytes,
            "pass_records_removed": counts.records_before - counts.records_after,
            "pass_records_kept": counts.records_after,
            "pass_null_keys": counts.null_keys,
            "pass_tombstones_kept": counts.tombstones_after,
            "pass_markers_removed": counts.markers_before - counts.markers_after,
            "pass_markers_kept": counts.markers_after,
            "pass_next_horizon_ms": counts.next_horizon_ms,
        }
    return columns


def _print_node(node: NodeStands) -> None:
    told = node_in_words(node.cluster, node.node_id, node.log_dirs)
    print_text(f"{told}: {len(node.stands)} compacted logs")
    if node.stopped is not None:
        print_text(f"  the cleaner does not run: {node.stopped}")
    frees = ("frees>",) if any(one.foretold for one in node.stands.values()) else ()
    table = made_table(
        "log", "stand", "ratio>", "above>", "clean>", "cleanable>", *frees, "dirty>", "from>", "why"
    )
    ordered = sorted(node.stands.items(), key=_urgency)
    for (_, folder), one in ordered[:MOST_ROWS_SHOWN]:
        table.add_row(*map(cell, _cells(folder, one, has_frees=bool(frees))))
    console().print()
    print_table(table, len(ordered))
    console().print()


def _urgency(found: tuple[LogKey, LogStand]) -> tuple[int, float, LogKey]:
    key, one = found
    return _ORDER[one.stand], 0.0 if one.found is None else -one.found.ratio, key


def _cells(folder: str, one: LogStand, *, has_frees: bool) -> tuple[str, ...]:
    found = one.found
    if found is None:
        return folder, one.stand.value, *("-",) * (7 if has_frees else 6), one.why
    return (
        folder,
        one.stand.value,
        f"{found.ratio:.3f}",
        f"{one.config.min_cleanable_dirty_ratio:g}",
        size_text(found.clean_bytes),
        size_text(found.cleanable_bytes),
        *((_freed_text(one),) if has_frees else ()),
        size_text(found.dirty_bytes),
        str(found.first_dirty),
        one.why,
    )


def _freed_text(one: LogStand) -> str:
    """Return what a pass frees, as far as that is known."""
    if one.foretold is None:
        return "-"
    freed, counts, unread = one.foretold.freed_bytes, one.foretold.counts, one.foretold.unread
    if freed is None or counts is None:
        return "nothing" if one.foretold.throws else "not known"
    told = size_text(freed) if freed >= 0 else f"-{size_text(-freed)}"
    if unread is not None:
        return f"{told} ± {size_text(unread.error_bytes)}"
    return f"about {told}" if counts.estimated_bytes else told
