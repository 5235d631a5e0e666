"""The step of a build that reads the cluster's own topics: what ``internals`` does."""

from contextlib import ExitStack

from kafka_segments.engine.tables.delta import Warehouse
from kafka_segments.verbs.find.internals.files import Origin
from kafka_segments.verbs.find.internals.report import print_internals
from kafka_segments.verbs.find.internals.run import InternalsOptions, run_internals
from kafka_segments.verbs.scan.options import BuildOptions


def read_internal_topics(warehouse: Warehouse, options: BuildOptions) -> int:
    """Read the internal topics below the sources of a build; return the number of findings.

    stderr says how many logs were read.

    Raises:
        SourceError: a source cannot be listed.
    """
    origin = Origin(
        sources=options.sources,
        cluster=options.cluster,
        broker_id=options.broker_id,
        follow_links=options.follow_links,
        most_vanished=options.most_vanished,
    )
    with ExitStack() as caches:
        reading = run_internals(warehouse, InternalsOptions(origin), caches)
        return print_internals(reading, "table", is_shown=False)
