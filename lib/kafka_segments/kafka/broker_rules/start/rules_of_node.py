"""Rows of the table of a start: a node's own files, its metadata log, and partitions' folders."""

from kafka_segments.kafka.broker_rules.start.effects import Effect, StartRule
from kafka_segments.kafka.text import checkpoints as names

_META = "MetaPropertiesEnsemble"
_MANAGER = "LogManager"
_RAFT = "KafkaRaftLog"
_COPY_META = (
    "put the file back from a backup, or write it anew with the cluster.id and node.id of the other"
    " directories and the directory.id that metadata_brokers of `internals metadata` has"
)
_MOVE_OUT = "move it out of the log directory"
_ID_BACK = (
    "write partition.metadata anew, with the topic id of `kafka-topics --describe` or of"
    " `internals metadata` (a line `version: 0`, a line `topic_id: …`)"
)

NODE_RULES: dict[str, StartRule] = {
    "meta-missing": StartRule(
        names.META_PROPERTIES,
        "missing, in one of several directories or in all",
        Effect.ENDS,
        "RuntimeException",
        f"{_META}, KafkaRaftServer.initializeLogDirs",
        _COPY_META + "; an empty disk: mount it, or format it with kafka-storage",
    ),
    "meta-no-node": StartRule(
        names.META_PROPERTIES,
        "no node id: empty, zeros, or without version= and so taken for version 0",
        Effect.ENDS,
        "RuntimeException",
        "KafkaRaftServer.initializeLogDirs",
        _COPY_META,
    ),
    "meta-refused": StartRule(
        names.META_PROPERTIES,
        "an unknown version, a missing key, no number, an id that is none; a folder",
        None,
        "RuntimeException",
        f"{_META}.Loader",
        _COPY_META,
    ),
    "meta-differs": StartRule(
        names.META_PROPERTIES,
        "another cluster id or node id than the other directories, or the same directory id",
        Effect.ENDS,
        "RuntimeException",
        f"{_META}.verify",
        _COPY_META + "; a directory of another node: take it out of log.dirs",
    ),
    "metadata-twice": StartRule(
        "__cluster_metadata-0",
        "in more than one directory",
        Effect.ENDS,
        "KafkaException",
        "KafkaRaftServer.initializeLogDirs",
        "move the one that is not in metadata.log.dir away",
    ),
    "bootstrap": StartRule(
        "bootstrap.checkpoint",
        "in metadata.log.dir: empty, zeros, or no metadata.version in it",
        Effect.ENDS,
        "RuntimeException",
        "BootstrapDirectory, BatchFileReader",
        "move the file away: once the metadata log has records, it is not used",
    ),
    "quorum-state": StartRule(
        "quorum-state",
        "no JSON of its form",
        Effect.ENDS,
        "UncheckedIOException",
        "FileQuorumStateStore",
        "move the file away: a voter forgets only whom it voted for in the current epoch, so do it"
        " on one voter at a time",
    ),
    "metadata-gone": StartRule(
        "__cluster_metadata-0",
        "the folder is in none of the directories",
        Effect.STRAY,
        "",
        f"{_RAFT}.createLog",
        "put the folder back from a backup or a disk; if metadata.log.dir lies elsewhere, give it"
        " as a source, too",
    ),
    "metadata-anew": StartRule(
        "__cluster_metadata-0",
        "its .log is missing or ends before the newest .checkpoint",
        Effect.DELETED,
        "",
        f"{_RAFT}.truncateToLatestSnapshot",
        "put the missing .log back; a .checkpoint with a name that is not its own: move it away",
    ),
    "metadata-no-checkpoint": StartRule(
        "__cluster_metadata-0",
        "the log starts after offset 0, and no .checkpoint reaches its start",
        Effect.ENDS,
        "IllegalStateException",
        f"{_RAFT}.recoverSnapshots",
        "put the .checkpoint back from a backup or another controller",
    ),
    "metadata-checkpoint": StartRule(
        "__cluster_metadata-0",
        "the newest .checkpoint cannot be read",
        Effect.ENDS,
        "CorruptRecordException",
        "RecordsSnapshotReader",
        "put the .checkpoint back from another controller; where the .log still has all records"
        " from offset 0 on, move the .checkpoint away",
    ),
    "metadata-state": StartRule(
        "__cluster_metadata-0",
        "a part of what was written is missing or damaged, or of a newer release",
        Effect.NOT_KNOWN,
        "",
        "MetadataLoader",
        "put missing or damaged files back from another controller; run this as the broker's user,"
        " with a kafka-segments that knows the broker's release",
    ),
    "metadata-older": StartRule(
        "__cluster_metadata-0",
        "its last records are missing or damaged, and this node is the only voter",
        Effect.FORGOTTEN,
        "",
        "KafkaRaftLog, MetadataLoader",
        "put missing or damaged files back from a backup: topics, settings and leader epochs that"
        " came later are lost",
    ),
    "metadata-id": StartRule(
        names.PARTITION_METADATA,
        "of the metadata log, with another id",
        Effect.ENDS,
        "InconsistentTopicIdException",
        "UnifiedLog.initializeTopicId",
        "move the file away: the broker makes it anew",
    ),
    "folder-name": StartRule(
        "a folder in a log directory",
        "its name is no partition's",
        Effect.ENDS,
        "KafkaException",
        "LocalLog.parseTopicPartitionName",
        _MOVE_OUT,
    ),
    "file-name": StartRule(
        "a file in a partition's folder",
        "ends as a broker's files do, and has no number before its first dot",
        Effect.ENDS,
        "NumberFormatException",
        "LogFileUtils.offsetFromFileName",
        "move it out of the folder",
    ),
    "twice": StartRule(
        "a partition's folder",
        "the partition has another folder, in the same or another directory",
        Effect.ENDS,
        "IllegalStateException",
        f"{_MANAGER}.loadLog",
        "keep the one that the assigned directory has (metadata_partitions of `internals metadata`,"
        " then the longer one) and move the other away",
    ),
    "partition-metadata": StartRule(
        names.PARTITION_METADATA,
        "cannot be read",
        None,
        "NullPointerException",
        "PartitionMetadataReadBuffer",
        _ID_BACK,
    ),
    "no-topic-id": StartRule(
        names.PARTITION_METADATA,
        "missing",
        Effect.STRAY,
        "",
        "BrokerMetadataPublisher, LogManager.loadLog",
        _ID_BACK,
    ),
    "stray-id": StartRule(
        names.PARTITION_METADATA,
        "an id that no topic of the metadata log has, or not this partition",
        Effect.STRAY,
        "",
        "LogManager.isStrayReplica",
        _ID_BACK + "; a topic that was deleted: nothing",
    ),
    "stray-replica": StartRule(
        "a partition's folder",
        "the metadata log assigns no replica to this node",
        Effect.STRAY,
        "",
        "LogManager.isStrayReplica",
        "none, if the replica was moved away and the others are whole; else copy the folder first",
    ),
    "folder-missing": StartRule(
        "a partition's folder",
        "missing, and the metadata log assigns a replica to this directory",
        Effect.EMPTY,
        "",
        "LogManager.getOrCreateLog",
        "put the folder back before the start; it may have another name now",
    ),
    "future-alone": StartRule(
        "a folder marked -future",
        "the partition has no other folder, and is not assigned to this directory",
        Effect.EMPTY,
        "",
        "ReplicaManager, ReplicaAlterLogDirsThread",
        "copy the folder first; rename it to <topic>-<partition>, without .<id>-future",
    ),
    "future-promoted": StartRule(
        "a folder marked -future",
        "the metadata log assigns the partition to its directory: it takes the other's place",
        Effect.DELETED,
        "",
        "LogManager.recoverAbandonedFutureLogs",
        "copy the other folder first, if the -future is not its equal",
    ),
    "delete-folder": StartRule(
        "a folder marked -delete",
        "any",
        Effect.DELETED,
        "",
        f"{_MANAGER}.deleteLogs",
        "move the folder away, if its records are still wanted",
    ),
}
"""In the order of the start, by their short names."""
