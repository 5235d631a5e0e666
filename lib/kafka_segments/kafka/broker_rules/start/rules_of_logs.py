"""Rows of the table of a start: checkpoints, and what lies in a partition's folder."""

from kafka_segments.kafka.broker_rules.limits import MOST_SEGMENT_BYTES
from kafka_segments.kafka.broker_rules.start.effects import Effect, StartRule
from kafka_segments.kafka.text import checkpoints as names

_LOADER = "LogLoader"
_WATERMARKS = (
    "put the file back, or move it away: the broker makes it anew, and each high watermark begins"
    " at its log's start until the replicas have fetched"
)
_INDEX_AWAY = (
    "move the segment's .index away: the start then recovers this segment alone, makes its index"
    " files anew and cuts it at the first bytes that are no sound batch"
)
_PUT_BACK = "put the missing files back from a backup or another replica before the start"

LOG_RULES: dict[str, StartRule] = {
    "epochs": StartRule(
        names.LEADER_EPOCHS,
        "cannot be read",
        None,
        "IOException",
        "LeaderEpochCheckpointFile, LeaderEpochFileCache",
        "put the file back, or move it away: the epochs are then those of the batches that recovery"
        " reads, and of new ones",
    ),
    "recovery-point": StartRule(
        names.RECOVERY_POINT,
        "cannot be read; where it is a number or the count alone, all points are 0",
        None,
        "IOException",
        "OffsetCheckpointFile, LogManager.loadLogs",
        "put the file back, or move it away: after a hard stop each log of the directory is then"
        " recovered from its first segment on, and cut at a bad batch wherever it lies",
    ),
    "log-start": StartRule(
        names.LOG_START_OFFSET,
        "cannot be read; where it is a number or the count alone, as if it were missing",
        None,
        "IOException",
        "OffsetCheckpointFile, LogManager.loadLogs",
        "put the file back, or write it anew with the starts of the leader-epoch-checkpoint files;"
        " moved away, deleted records come back",
    ),
    "high-watermark": StartRule(
        names.HIGH_WATERMARK,
        "cannot be read: the broker is up, then loses the directory or halts",
        None,
        "IOException",
        "OffsetCheckpointFile, ReplicaManager",
        _WATERMARKS,
    ),
    "cleaner-offset": StartRule(
        names.CLEANER_OFFSET,
        "cannot be read: the broker is up, then loses the directory or halts",
        None,
        "IOException",
        "OffsetCheckpointFile, LogCleanerManager",
        "move the file away: the cleaner begins at the start of each log",
    ),
    "high-watermark-number": StartRule(
        names.HIGH_WATERMARK,
        "a line with a number that is none, or too large: read when the broker is up, and what it"
        " serves then is not known",
        Effect.NOT_KNOWN,
        "NumberFormatException",
        "OffsetCheckpointFile, LazyOffsetCheckpoints",
        _WATERMARKS,
    ),
    "cleaner-offset-number": StartRule(
        names.CLEANER_OFFSET,
        "a line with a number that is none, or too large: the broker serves, its cleaner ends",
        Effect.UNCLEANED,
        "NumberFormatException",
        "LogCleanerManager.allCleanerCheckpoints",
        "move the file away: the cleaner begins at the start of each log",
    ),
    "segment-too-large": StartRule(
        ".log, .swap",
        f"of more than {MOST_SEGMENT_BYTES} bytes, whatever they hold",
        Effect.ENDS,
        "KafkaException",
        "FileRecords, LogSegment.open",
        "copy the segment first; cut the file to its valid_bytes, which `build` tells (truncate"
        " -s); records that are cut are to come from another replica",
    ),
    "unreadable-end": StartRule(
        ".log",
        "bytes that are no batch, such as preallocated zeros, where the start reads the log's end:"
        " after a clean stop, and of a .swap file",
        Effect.ENDS,
        "CorruptRecordException",
        "LogSegment.readNextOffset",
        _INDEX_AWAY,
    ),
    "unreadable-swap": StartRule(
        ".swap",
        "bytes that are no batch where the start reads its end",
        Effect.ENDS,
        "CorruptRecordException",
        f"{_LOADER}.load",
        "move the .swap files of this offset away, and put the segments back that they replaced",
    ),
    "refused-segment": StartRule(
        ".log",
        "offsets or transactions that recovery refuses",
        Effect.ENDS,
        "IllegalArgumentException",
        "LogSegment.recover, LocalLog.splitOverflowedSegment",
        "move the segment's files away, if its records are in others; see `recovery"
        " forecast --check full`",
    ),
    "txn-version": StartRule(
        ".txnindex",
        "an entry of another version than 0",
        Effect.ENDS,
        "KafkaException",
        "TransactionIndex.sanityCheck",
        "put a rebuilt file in its place (`audit` names it, `build` makes it)",
    ),
    "folder-for-file": StartRule(
        ".index, .timeindex, .snapshot",
        "a folder in the place of a file that is opened: of the active segment or one that is"
        " recovered; the newest .snapshot",
        None,
        "FileNotFoundException",
        "AbstractIndex, ProducerStateManager.readSnapshot",
        "move the folder away: the start makes the file anew",
    ),
    "index-too-large": StartRule(
        ".index",
        "of the active segment: larger than segment.index.bytes",
        Effect.ENDS,
        "IllegalArgumentException",
        "AbstractIndex.resize",
        _INDEX_AWAY,
    ),
    "end-moved-back": StartRule(
        ".index",
        "of the active segment: its last entry is beyond the last batch, so the log ends at the"
        " segment's base offset; new records get offsets that are there already",
        Effect.UNSEEN,
        "",
        "LogSegment.readNextOffset",
        _INDEX_AWAY,
    ),
    "torn-end": StartRule(
        ".log",
        "a torn last batch under a clean marker: it stays, and new records are written behind it",
        Effect.CUT,
        "",
        "LogSegment.readNextOffset",
        _INDEX_AWAY,
    ),
    "end-missing": StartRule(
        ".log",
        "the log ends before the offsets that its checkpoints note",
        Effect.UNSEEN,
        "",
        f"{_LOADER}.recoverLog",
        _PUT_BACK,
    ),
    "start-missing": StartRule(
        ".log",
        "the first segment begins after the log's start",
        Effect.UNSEEN,
        "",
        f"{_LOADER}.load",
        _PUT_BACK,
    ),
    "start-beyond-end": StartRule(
        names.LOG_START_OFFSET,
        "beyond the log's end: all segments are deleted, after a clean stop too",
        Effect.DELETED,
        "",
        f"{_LOADER}.deleteSegmentsIfLogStartGreaterThanLogEnd",
        "put the log's line in log-start-offset-checkpoint back to its first offset, before the"
        " start; copy the folder first",
    ),
    "start-hidden": StartRule(
        names.LOG_START_OFFSET,
        "beyond the start that leader-epoch-checkpoint has, up to the log's end: what lies before"
        " it is not served, and deleted later",
        Effect.UNSEEN,
        "",
        f"{_LOADER}.load, UnifiedLog.deleteLogStartOffsetBreachedSegments",
        "put the log's line in log-start-offset-checkpoint back to the first offset of its"
        " leader-epoch-checkpoint, before the start",
    ),
    "start-forgotten": StartRule(
        names.LOG_START_OFFSET,
        "missing, empty, or below the start that leader-epoch-checkpoint has",
        Effect.BACK,
        "",
        f"{_LOADER}.load",
        "write the log's line anew: topic, partition and the first offset of its"
        " leader-epoch-checkpoint",
    ),
    "recovery-cut": StartRule(
        ".log",
        "after a hard stop: a bad batch at or after the recovery point",
        Effect.CUT,
        "",
        f"{_LOADER}.recoverLog",
        "copy the segment first; `divergence repair` takes the records from another replica",
    ),
    "swap-replaces": StartRule(
        ".swap",
        "of a log that is not compacted: it lacks records of the segments that it replaces",
        Effect.DELETED,
        "",
        f"{_LOADER}.load",
        "move the .swap files away before the start",
    ),
    "gap": StartRule(
        ".log",
        "a segment is missing between two others of a log that is not compacted, or behind where"
        " its cleaner came",
        Effect.UNSEEN,
        "",
        f"{_LOADER}.loadSegmentFiles",
        _PUT_BACK,
    ),
    "time-index-zeros": StartRule(
        ".timeindex",
        "its last entry is zero: the segment's largest timestamp is taken for one of 1970, and"
        " retention.ms deletes it at the first check that finds no older one",
        Effect.DELETED,
        "",
        "TimeIndex.lastEntryFromIndexFile, LogSegment.largestTimestamp",
        _INDEX_AWAY,
    ),
    "aborted-forgotten": StartRule(
        ".txnindex",
        "missing, empty, cut or with entries that are not the log's",
        Effect.FORGOTTEN,
        "",
        "TransactionIndex.collectAbortedTxns",
        "put a rebuilt file in its place (`build` makes it); or " + _INDEX_AWAY,
    ),
    "producers-forgotten": StartRule(
        ".snapshot",
        "none is left after a clean stop of a log with producers: their state is taken for empty. A"
        " retry"
        " can be written twice, and records of open transactions are told as committed ones",
        Effect.FORGOTTEN,
        "",
        "UnifiedLog.rebuildProducerState",
        "put the .snapshot at the log's end back, or remove .kafka_cleanshutdown from the log"
        " directory: the start then reads the state from the batches",
    ),
    "unreadable": StartRule(
        "any file",
        "this process may not read it, or cannot",
        Effect.NOT_KNOWN,
        "AccessDeniedException",
        _LOADER,
        "run this as the broker's user",
    ),
    "not-read": StartRule(
        "a log directory or folder",
        "it was not given, is a link that was not followed, or this user may not list it",
        Effect.NOT_KNOWN,
        "",
        "",
        "give it as a source, too; a link: give what it leads to, and --follow-links; what this"
        " user may not list: run this as the broker's user",
    ),
}
"""In the order of the start, by their short names."""
