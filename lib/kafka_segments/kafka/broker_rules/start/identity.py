"""What a start does with ``meta.properties`` of all directories, and ``bootstrap.checkpoint``.

Source: MetaPropertiesEnsemble, KafkaRaftServer.initializeLogDirs, BootstrapDirectory (4.3.1).
"""

from collections.abc import Iterator

from kafka_segments.kafka.broker_rules.start.effects import Effect
from kafka_segments.kafka.broker_rules.start.facts import Bad
from kafka_segments.kafka.broker_rules.start.files import check_meta, is_reserved
from kafka_segments.kafka.broker_rules.start.metadata import METADATA_FOLDER
from kafka_segments.kafka.broker_rules.start.rules import StartFinding
from kafka_segments.kafka.broker_rules.start.state import Node, of_dir
from kafka_segments.kafka.text.checkpoints import META_PROPERTIES


def decide_metas(node: Node) -> Iterator[StartFinding]:
    """Check meta.properties of all directories. Source: MetaPropertiesEnsemble."""
    if not node.is_formatted:
        node.notes.append(
            "there is no meta.properties: no directory that a broker starts on; if it is one's, put"
            " the file back, or write it anew with the broker's cluster.id and node.id"
        )
        return
    refused = dict(_refused_metas(node))
    yield from _differing(node)
    node.notes.extend(
        f"{uri}: node.id is {node.node_id}, too, and cluster.id is another: taken for another"
        " broker's directory; one that has both in log.dirs ends at that"
        for uri in node.facts.of_other_clusters
    )
    for uri, bad in refused.items():
        is_needed = uri == node.metadata_dir or len(refused) == len(node.facts.dirs)
        effect = Effect.ENDS if is_needed else Effect.WITHOUT
        yield of_dir("meta-refused", effect, uri, META_PROPERTIES, bad)
    with_metadata = [one.uri for one in node.facts.dirs if one.metadata_folder]
    for uri in with_metadata[1:]:
        found = f"the metadata log is in {with_metadata[0]}, too"
        yield StartFinding(
            "metadata-twice", Effect.ENDS, uri, METADATA_FOLDER, "", found, None, "KafkaException"
        )
    for one in node.facts.dirs:
        identity = node.identities.get(one.uri)
        if not one.meta.is_there:
            missing = Bad("RuntimeException", "there is no meta.properties")
            yield of_dir("meta-missing", Effect.ENDS, one.uri, META_PROPERTIES, missing)
        elif identity is not None and identity.node_id is None:
            missing = Bad("RuntimeException", "no node id is in it")
            yield of_dir("meta-no-node", Effect.ENDS, one.uri, META_PROPERTIES, missing)
        elif identity is not None and identity.cluster_id is None:
            missing = Bad("RuntimeException", "no cluster id is in it")
            yield of_dir("meta-no-node", Effect.ENDS, one.uri, META_PROPERTIES, missing)


def _refused_metas(node: Node) -> Iterator[tuple[str, Bad]]:
    for one in node.facts.dirs:
        if not one.meta.is_there or one.meta.unread is not None:
            continue
        found = one.meta.bad or check_meta(one.meta.value)
        if isinstance(found, Bad):
            yield one.uri, found
        else:
            node.identities[one.uri] = found


def _differing(node: Node) -> Iterator[StartFinding]:
    """Hold the directories' identities against each other."""
    ids: dict[str, str] = {}
    clusters = [one.cluster_id for one in node.identities.values() if one.cluster_id is not None]
    of_node = node.node_id
    for uri, identity in sorted(node.identities.items()):
        reason = None
        directory = identity.directory_id
        if identity.cluster_id is not None and identity.cluster_id != clusters[0]:
            reason = f"cluster.id is {identity.cluster_id}, another directory has {clusters[0]}"
        elif identity.node_id is not None and identity.node_id != of_node:
            reason = f"node.id is {identity.node_id}, another directory has {of_node}"
        elif identity.node_id is not None and identity.node_id < 0:
            reason = f"node.id is {identity.node_id}"
        elif directory is not None and is_reserved(directory):
            reason = f"directory.id {directory} is one that Kafka keeps for itself"
        elif directory is not None and ids.setdefault(directory, uri) != uri:
            reason = f"directory.id {directory} is that of {ids[directory]}, too"
        if reason is not None:
            bad = Bad("RuntimeException", reason)
            yield of_dir("meta-differs", Effect.ENDS, uri, META_PROPERTIES, bad)


def decide_bootstrap(node: Node) -> Iterator[StartFinding]:
    """Check ``bootstrap.checkpoint`` of the metadata log's directory."""
    for one in node.facts.dirs:
        if one.uri == node.metadata_dir and one.bootstrap.bad is not None:
            bad = one.bootstrap.bad
            yield of_dir("bootstrap", Effect.ENDS, one.uri, "bootstrap.checkpoint", bad)
