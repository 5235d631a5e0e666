"""What crosses segments, folded over a log in base-offset order; one summary a segment.

Three modes, as a broker may meet a log:

``segment``: every segment is recovered on its own. A segment that is refused or emptied leaves
no trace in the producer state of those after it.

``loader-unclean``: a load after an unclean stop, index files present. Where bytes are cut off,
all later segments are removed and the load ends.

``loader-missing``: a load without index files. Later segments stay; an offset that goes back at
an index entry makes the load fail.

The loads start from no snapshots, no leader epochs and recovery point 0. They write the producer
snapshots and the leader epochs that a broker has after it. Before each segment, and at the end, a
load rebuilds the producer state from the newest snapshot and the batches after it. Where offsets
rise there are none, and what is known of the segments is enough; where they go back some are read
again (``Reread``).

Source: LogLoader.load, recoverSegment; UnifiedLog.rebuildProducerState; ProducerStateManager
truncateAndReload, takeSnapshot, removeStraySnapshots (3.0 and later).
"""

from kafka_segments.kafka.index.log.load import LogLoad
from kafka_segments.kafka.index.log.loading import LoadOptions, Reaches, RecoveryMode, Reread
from kafka_segments.kafka.index.log.segment_fold import SegmentFold


def fold_of(
    mode: RecoveryMode,
    options: LoadOptions,
    reread: Reread | None = None,
    reaches: Reaches | None = None,
) -> SegmentFold | LogLoad:
    """Start a fold; without ``reread`` segments count as a whole where batches are read again.

    Without ``reaches`` every offset is found.
    """
    if mode == RecoveryMode.SEGMENT:
        return SegmentFold()
    return LogLoad(options, mode == RecoveryMode.LOADER_UNCLEAN, reread, reaches)
