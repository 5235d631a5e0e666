"""What must hold of every table: the checks of each, by table.

``SUITES_VERSION`` goes up with every change of what is checked: only results of the same version
compare.
"""

from kafka_segments.engine.tables import catalog as tables
from kafka_segments.engine.tables.keys import LOG_KEYS, SEGMENT_KEYS
from kafka_segments.verbs.tell.validate.decide.checks import Check, Severity, Suite

SUITES_VERSION = 4
_CLOCK_SKEW_MS = 3_600_000  # as log.message.timestamp.after.max.ms
_FATAL, _WARNING, _INFO = Severity
SEGMENT_CHECKS = (
    Check("segment_keys_unique", "rows_of_key", _FATAL, "a segment has one row", most=1),
    Check("offsets_do_not_overlap", "overlap_offsets", _FATAL, "no offset lies in two segments"),
    Check(
        "offsets_have_no_hole",
        "hole_offsets",
        _WARNING,
        "a segment begins where the one before ends, unless compaction, the log start offset"
        " or damage explains it",
    ),
    Check("sizes_add_up", "size_difference_bytes", _FATAL, "valid and cut off bytes: all", least=0),
    Check("counts_not_negative", "least_count", _FATAL, "nothing counts below 0", 0, None),
    Check("span_fits", "span_offsets", _FATAL, "offsets lie within 2^31 of the base", 0, 2**31),
    Check(
        "records_fit_the_span",
        "records_beyond_span",
        _WARNING,
        "a segment has no more records than offsets",
    ),
    Check("emptiness_agrees", "emptiness_conflicts", _FATAL, "no bytes, no batches, no offsets"),
    Check("timestamps_in_order", "reversed_ms", _FATAL, "the least is not above the greatest"),
    Check(
        "offset_of_max_timestamp_within",
        "max_timestamp_outside",
        _FATAL,
        "the greatest timestamp's offset lies in the segment",
    ),
    Check(
        "largest_timestamp_follows",
        "largest_timestamp_error",
        _FATAL,
        "as Kafka takes it: the greatest timestamp, else the mtime",
    ),
    Check(
        "timestamps_not_in_the_future",
        "ahead_ms",
        _WARNING,
        "at most an hour ahead: else retention.ms keeps the segment for longer",
        most=_CLOCK_SKEW_MS,
    ),
    Check(
        "timestamps_do_not_regress",
        "regress_ms",
        _INFO,
        "a segment's greatest timestamp is not below those of the segments before",
    ),
    Check(
        "retention_by_record_time",
        "is_mtime_fallback",
        _INFO,
        "a timestamp of a record, not the file's mtime, decides on retention",
    ),
    Check("no_damage", "is_damaged", _WARNING, "nothing that was read of the segment is damaged"),
    Check(
        "checksums_verified",
        "is_unverified",
        _WARNING,
        "all batches were read and their checksums verified: else whether the segment is sound is"
        " not known",
    ),
)
_ENTRY_CHECKS = (
    Check("entry_keys_unique", "duplicate_entries", _FATAL, "an entry has one row"),
    Check("entries_rise", "entries_out_of_order", _FATAL, "both columns rise together"),
    Check("entries_within_segment", "entries_outside", _FATAL, "within the segment's valid part"),
    Check("entries_match_segment", "entries_missing", _FATAL, "as many as the segment says", 0),
    Check(
        "entries_have_a_segment", "is_orphan", _WARNING, "else a build did not end: run it again"
    ),
)
_HISTORY_CHECKS = (
    Check(
        "rows_follow_one_another",
        "overlap_offsets",
        _FATAL,
        "at an offset of the metadata log one row holds",
    ),
)
SUITES = (
    Suite("segments", SEGMENT_KEYS, SEGMENT_CHECKS, has_measured_keys=True),
    Suite("offset_index", SEGMENT_KEYS, _ENTRY_CHECKS, has_measured_keys=True),
    Suite(
        "time_index",
        SEGMENT_KEYS,
        (
            *_ENTRY_CHECKS,
            Check(
                "last_entry_is_the_greatest",
                "last_timestamp_error",
                _FATAL,
                "the last entry has the segment's greatest timestamp",
            ),
        ),
        has_measured_keys=True,
    ),
    Suite(
        "logs",
        LOG_KEYS,
        (
            Check("log_files_readable", "has_problem", _WARNING, "a broker's files were read"),
            Check("epochs_rise", "epochs_out_of_order", _WARNING, "leader epochs and offsets rise"),
            Check(
                "log_reaches_high_watermark",
                "missing_to_high_watermark",
                _WARNING,
                "committed offsets lie in the log: else its end is lost",
            ),
            Check(
                "log_reaches_its_start",
                "missing_to_log_start",
                _WARNING,
                "the log start offset lies in the log: else a broker deletes all segments",
            ),
        ),
    ),
    Suite(
        "log_dirs",
        tables.LOG_DIRS.keys,
        (Check("dir_files_readable", "has_problem", _WARNING, "a broker's files were read"),),
    ),
    Suite("unrecognized_files", tables.UNRECOGNIZED_FILES.keys),
    Suite(
        "runs",
        ("run_id", "sources_text"),
        (
            Check("run_counts_add_up", "count_difference", _FATAL, "read and unchanged: all", 0),
            Check("run_ends_after_start", "negative_ms", _FATAL, "a run ends after its start"),
            Check(
                "every_file_is_a_row",
                "rows_missing",
                _FATAL,
                "the last run found as many segments as the table has under its sources",
                least=0,
            ),
            Check(
                "segments_do_not_drift",
                "segments_lost_percent",
                _WARNING,
                "half of the run before's segments, or more, are still there",
                most=50,
            ),
            Check(
                "damage_does_not_drift",
                "damage_grown_percent",
                _WARNING,
                "no more than 10 in 100 segments read are damaged that were not before",
                most=10,
            ),
        ),
    ),
    Suite(
        "retention_decisions",
        tables.RETENTION_DECISIONS.keys,
        (
            Check(
                "decision_has_its_rule",
                "rule_conflict",
                _FATAL,
                "delete names its rule, keep has none",
            ),
        ),
    ),
    Suite(
        "roll_decisions",
        tables.ROLL_DECISIONS.keys,
        (
            Check(
                "decision_has_its_rule",
                "rule_conflict",
                _FATAL,
                "roll names its rule, keep and unknown have none",
            ),
        ),
    ),
    Suite("retention_plans", tables.RETENTION_PLANS.keys),
    Suite("migration_inventory", tables.MIGRATION_INVENTORY.keys),
    Suite("migration_obstacles", tables.MIGRATION_OBSTACLES.keys),
    Suite(
        "migration_plans",
        tables.MIGRATION_PLANS.keys,
        (
            Check(
                "log_moves_as_a_whole",
                "log_torn",
                _FATAL,
                "all segments of a log are migrated or none; none where one is refused",
            ),
            Check(
                "kept_segments_keep_their_size",
                "resized_bytes",
                _FATAL,
                "only a conversion or a cut changes a segment's bytes",
            ),
            Check(
                "plan_has_every_segment",
                "next_base_conflict",
                _FATAL,
                "each segment of a log names the one behind it",
            ),
        ),
    ),
    Suite(
        "migration_proofs",
        tables.MIGRATION_PROOFS.keys,
        (
            Check(
                "proven_records_are_equal",
                "records_differ",
                _FATAL,
                "a segment without a problem has as many records, of the same digest",
            ),
            Check("segments_are_proven", "has_problem", _WARNING, "a segment's proof holds"),
            Check("proofs_are_planned", "is_unplanned", _WARNING, "a plan has the segment proven"),
        ),
    ),
    Suite(
        "migration_events",
        tables.MIGRATION_EVENTS.keys,
        (
            Check(
                "applied_after_verified",
                "is_unverified",
                _FATAL,
                "a log is verified before it is swapped in",
            ),
            Check(
                "last_step_is_done",
                "is_refused",
                _WARNING,
                "a log's last step was neither refused nor did it fail",
            ),
        ),
    ),
    Suite("index_audits", tables.INDEX_AUDITS.keys),
    Suite("divergences", tables.DIVERGENCES.keys),
    Suite("offset_ranges", tables.OFFSET_RANGES.keys),
    Suite(
        "internal_records",
        tables.INTERNAL_RECORDS.keys,
        (Check("internal_records_readable", "has_problem", _WARNING, "a record was decoded"),),
    ),
    Suite("internal_files", tables.INTERNAL_FILES.keys),
    *(Suite(table.name, table.keys, _HISTORY_CHECKS) for table in tables.METADATA_TABLES),
    Suite("metadata_problems", tables.METADATA_PROBLEMS.keys),
    Suite("remote_segments", tables.REMOTE_SEGMENTS.keys),
)
