"""What a cluster lives through before its disks are looked at: a script, drawn by a seed."""

from __future__ import annotations

import random
import struct
import time
from collections.abc import Callable
from typing import Any

from kafka_segments.kafka.broker_rules.consumer_groups import group_partition
from support.kafka.kraft_cluster import COORDINATORS, DIRECTORIES, NODES, KraftCluster

Step = dict[str, Any]
_CLEANED_AT_ONCE = {
    "segment.ms": "1500",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "1000",
}


class ClusterLife:
    """The steps of a cluster's life; each is kept, with the time at which it was taken."""

    def __init__(self, cluster: KraftCluster, seed: int) -> None:
        """Prepare a life for a cluster that runs."""
        self._cluster = cluster
        self._client = cluster.client
        self._draw = random.Random(seed)
        self.steps: list[Step] = [{"seed": seed}]

    def live(self) -> None:
        """Live through all scenes, those in the middle in drawn order; one node is dead then."""
        self._open_producer("plain", None)
        self._make_topics()
        self._join_groups()
        scenes: list[Callable[[], None]] = [
            self._change_configs,
            self._move_partitions,
            self._lose_a_node,
            self._elect_uncleanly,
            self._do_transactions,
            self._let_groups_change,
            self._change_security,
            self._change_features,
            self._tier,
            self._forget_a_transaction,
        ]
        self._draw.shuffle(scenes)
        for scene in scenes:
            self._note("scene", name=scene.__name__.strip("_"))
            scene()
        self._compact()
        self._leave_open()
        self._poll("classic-1", "classic-2", "modern-1", "streams-1", records=1_000, rounds=5)
        self._cluster.wait_until_in_sync()
        lost = self._draw.choice(NODES)
        self._kill(lost)
        self._wait_until_out(lost)
        time.sleep(2.0)

    def _note(self, step: str, **fields: object) -> None:
        self.steps.append({"ms": int(time.time() * 1000), "step": step, **fields})

    def _change(self, change: str, **fields: object) -> None:
        self._note(change, **fields)
        self._client.change(change, **fields)

    def _act(self, action: str, **fields: object) -> Step:
        self._note(action, **fields)
        return self._client.client(action, **fields)

    # Topics and what is in them.

    def _replicas(self, count: int = 3) -> list[int]:
        return self._draw.sample(NODES, count)

    def _create(self, topic: str, assignments: list[list[int]], **configs: str) -> None:
        named = {name.replace("_", "."): value for name, value in configs.items()}
        self._change("create", topic=topic, assignments=assignments, configs=named)

    def _make_topics(self) -> None:
        self._create("orders", [self._replicas() for _ in range(3)], retention_ms="604800000")
        self._create("clicks", [self._replicas(2) for _ in range(2)], cleanup_policy="compact")
        self._create("careful", [[1, 2], [2, 3], [3, 1]], min_insync_replicas="2")
        self._create("bold", [[1, 2], [2, 3]], unclean_leader_election_enable="true")
        self._create("short-lived", [self._replicas()])
        self._create("again", [self._replicas(1)])
        for partition in ("orders-0", "orders-1", "orders-2", "clicks-0", "careful-0", "bold-0"):
            self._send(partition)
        self._change("delete_topics", topics=["again"])
        self._create("again", [self._replicas(2)], segment_ms="600000")

    def _send(self, partition: str, count: int | None = None, *, producer: str = "plain") -> None:
        count = self._draw.randint(2, 8) if count is None else count
        self._act(
            "send",
            producer=producer,
            partition=partition,
            timestamp_ms=None,
            count=count,
            bytes=40,
        )

    def _open_producer(
        self,
        name: str,
        transactional_id: str | None,
        timeout_ms: int = 60_000,
        *,
        client_id: str | None = None,
    ) -> None:
        self._act(
            "open_producer",
            producer=name,
            transactional_id=transactional_id,
            timeout_ms=timeout_ms,
            client_id=client_id,
        )

    # Settings.

    def _set(self, kind: str, name: str, *deleted: str, **configs: str) -> None:
        named = {key.replace("_", "."): value for key, value in configs.items()}
        self._change("alter_configs", type=kind, name=name, set=named, delete=deleted)

    def _change_configs(self) -> None:
        hours = self._draw.randint(1, 200)
        self._set("TOPIC", "orders", retention_ms=str(hours * 3_600_000), segment_ms="3600000")
        self._set("TOPIC", "orders", "segment.ms", max_message_bytes="2000000")
        self._set("TOPIC", "clicks", min_cleanable_dirty_ratio="0.2")
        self._set("TOPIC", "clicks", "min.cleanable.dirty.ratio")
        self._set("BROKER", "", log_retention_ms=str(hours * 7_200_000))
        self._set("BROKER", "", "log.retention.ms", log_roll_ms="86400000")
        node = str(self._draw.choice(NODES))
        self._set("BROKER", node, log_cleaner_threads="2", message_max_bytes="3000000")
        self._set("BROKER", node, "message.max.bytes")
        self._set("GROUP", "new-readers", consumer_session_timeout_ms="50000")
        self._set("CLIENT_METRICS", "some-clients", interval_ms="60000", metrics="org.apache")

    def _change_security(self) -> None:
        for user in ("alice", "bob"):
            self._change("acl", topic="orders", user=user)
            self._change("scram", user=user)
            self._change("quota", user=user, rate=float(self._draw.randint(10, 99) * 1024))
        self._change("delete_acl", topic="orders", user="bob")
        self._change("delete_scram", user="bob")
        self._change("quota", user="bob", rate=None)

    def _change_features(self) -> None:
        self._change("feature", name="transaction.version", level=1, type="SAFE_DOWNGRADE")
        self._open_producer("older", "older-transactions")
        self._transaction("older", "orders-0", commits=True)
        self._act("close_producer", producer="older")
        self._change("feature", name="transaction.version", level=2, type="UPGRADE")

    # Where partitions lie, and who leads them.

    def _move_partitions(self) -> None:
        self._change(
            "add_partitions", topic="orders", count=5, assignments=[self._replicas(), [2, 1, 3]]
        )
        moves = {f"orders-{number}": self._replicas(2) for number in (0, 3)}
        self._change("reassign", replicas=moves)
        self._wait_for_moves(moves)
        self._change("reassign", replicas={"orders-0": self._replicas()})
        self._cluster.wait_until_in_sync()
        for name in DIRECTORIES:
            self._note("move_log_dir", topic="orders", partition=4, broker=2, directory=name)
            folder = str(self._cluster.node_folder(2) / name)
            self._client.change(
                "move_log_dir", topic="orders", partition=4, broker=2, folder=folder
            )
            time.sleep(1.0)
        self._change("elect", type="PREFERRED", partitions=["orders-0", "orders-1"])

    def _wait_for_moves(self, moves: dict[str, list[int]]) -> None:
        def has_moved(found: Step) -> bool:
            wanted = moves.get(f"{found['topic']}-{found['partition']}")
            return wanted is None or found["replicas"] == wanted

        self._cluster.wait_until(has_moved, "partitions moved")

    def _kill(self, node: int) -> None:
        self._note("kill", node=node)
        self._cluster.nodes[node].kill()

    def _start(self, node: int) -> None:
        self._note("start", node=node)
        self._cluster.nodes[node].start_node()

    def _wait_until_out(self, node: int) -> None:
        self._cluster.wait_until(
            lambda found: (
                found["leader"] != node and (node not in found["isr"] or len(found["isr"]) == 1)
            ),
            f"node {node} out of every ISR",
        )

    def _lose_a_node(self) -> None:
        node = self._draw.choice(NODES)
        self._kill(node)
        self._wait_until_out(node)
        self._send("orders-1")
        self._create("made-without-one", [[one for one in NODES if one != node]])
        self._start(node)
        self._cluster.wait_until_in_sync()

    def _elect_uncleanly(self) -> None:
        """The only replica in sync goes, and one that lags takes over."""
        self._cluster.wait_until_in_sync()
        self._kill(2)
        self._wait_until_out(2)
        self._send("bold-0", 5)
        self._kill(1)
        self._start(2)
        self._cluster.wait_until(
            lambda found: found["topic"] != "bold" or found["leader"] in (2, 3),
            "an unclean election",
        )
        self._send("bold-0", 1)
        self._start(1)
        self._cluster.wait_until_in_sync()

    # Transactions.

    def _transaction(self, producer: str, *partitions: str, commits: bool) -> None:
        self._act("begin", producer=producer)
        for partition in partitions:
            self._send(partition, producer=producer)
        self._act(f"{'commit' if commits else 'abort'}_transaction", producer=producer)

    def _do_transactions(self) -> None:
        for number in range(2):
            name = f"payments-{number}"
            self._open_producer(name, name)
            for _ in range(3):
                self._transaction(name, "orders-0", "orders-2", commits=self._draw.random() < 0.6)
            self._act("begin", producer=name)
            self._send("orders-1", producer=name)
            self._act(
                "send_offset", producer=name, group="exactly-once", partition="clicks-0", offset=1
            )
            self._act("commit_transaction", producer=name)
            self._act("close_producer", producer=name)
        self._open_producer("slow", "timed-out", 2_000)
        self._act("begin", producer="slow")
        self._send("orders-2", producer="slow")
        time.sleep(5.0)
        self._act("close_producer", producer="slow")

    def _leave_open(self) -> None:
        for name, partitions in (("left-open", ("orders-1", "clicks-1")), ("idle", ("orders-2",))):
            self._open_producer(name, name, 900_000)
            self._transaction(name, *partitions, commits=True)
        self._act("begin", producer="left-open")
        self._send("orders-1", producer="left-open")
        self._send("clicks-1", producer="left-open")

    def _forget_a_transaction(self) -> None:
        """Leave a transaction open that no coordinator knows, beside commits of old versions.

        Records that a broker does not write itself come from a client with the name that a broker
        lets write to internal topics. Coordinators read them when they move.
        """
        self._open_producer("hanging", "forgotten-transaction", 900_000)
        self._act("begin", producer="hanging")
        self._send("orders-2", producer="hanging")
        self._open_producer("internal", None, client_id="__admin_client")
        name = b"forgotten-transaction"
        self._send_bytes(
            "__transaction_state",
            name.decode(),
            (struct.pack(">hh", 0, len(name)) + name).hex(),
            None,
        )
        for version in range(5):
            group = f"ancient-{version}"
            commit = {
                "group": group,
                "topic": "orders",
                "partition": 1,
                "offset": version,
                "metadata": "of old",
                "commit_timestamp_ms": int(time.time() * 1000),
                "version": version,
                "leader_epoch": 0,
                "expire_timestamp_ms": -1,
            }
            (record,) = self._client.write_commits([commit])
            self._send_bytes("__consumer_offsets", group, record["key"], record["value"])
        self._act("close_producer", producer="internal")
        for node in NODES:
            self._note("stop", node=node)
            self._cluster.nodes[node].stop_node()
            self._start(node)
            self._cluster.wait_until_in_sync()

    def _send_bytes(self, topic: str, name: str, key: str, value: str | None) -> None:
        """Send a record to the partition of an internal topic whose coordinator has the name."""
        partition = f"{topic}-{group_partition(name, COORDINATORS)}"
        self._act("send_bytes", producer="internal", partition=partition, key=key, value=value)

    # Groups.

    def _join(
        self, member: str, group: str, protocol: str, *topics: str, instance: str | None = None
    ) -> None:
        self._act(
            "join", member=member, group=group, protocol=protocol, topics=topics, instance=instance
        )

    def _poll(self, *members: str, records: int = 1, rounds: int = 15) -> None:
        found = self._act("poll", members=members, records=records, rounds=rounds, commits=True)
        self.steps[-1]["found"] = found["records"]

    def _join_groups(self) -> None:
        self._set("GROUP", "sharers", share_auto_offset_reset="earliest")
        self._join("classic-1", "old-readers", "classic", "orders", "clicks")
        self._poll("classic-1")
        self._join("classic-2", "old-readers", "classic", "orders")
        self._poll("classic-1", "classic-2", records=10_000)
        self._join("modern-1", "new-readers", "consumer", "orders", instance="static-1")
        self._join("modern-2", "new-readers", "consumer", "orders", "careful")
        self._poll("modern-1", "modern-2", records=5)
        self._join("share-1", "sharers", "share", "orders")
        self._poll("share-1", records=5)
        self._join("streams-1", "streamers", "streams", "orders")
        self._poll("streams-1", records=5)

    def _let_groups_change(self) -> None:
        for number in range(4):
            self._send(f"orders-{number % 3}")
            self._poll("classic-1", "classic-2", records=2)
            self._poll("modern-1", "modern-2", records=2)
            self._poll("share-1", records=2)
        self._act("leave", member="modern-2")
        self._join("share-2", "sharers", "share", "orders", "careful")
        self._poll("share-1", "share-2")
        for group in ("by-hand", "forgotten"):
            for offset in range(1, 6):
                self._change("commit", group=group, offsets={"orders-0": offset, "clicks-0": 1})
        self._change("delete_offsets", group="by-hand", partitions=["clicks-0"])
        self._change("delete_group", group="forgotten")
        self._join("share-3", "sharers-gone", "share", "careful")
        self._poll("share-3", rounds=5)
        self._act("leave", member="share-3")
        self._change("delete_share_group", group="sharers-gone")

    # What ages.

    def _tier(self) -> None:
        tiered = {
            "remote_storage_enable": "true",
            "segment_ms": "1000",
            "local_retention_ms": "1000",
            "retention_ms": "-1",
        }
        self._create("tiered", [self._replicas(2)], **tiered)
        self._create("tiered-gone", [self._replicas(2)], **tiered)
        for _ in range(4):
            self._send("tiered-0")
            self._send("tiered-gone-0")
            time.sleep(1.3)
        self._change("delete_topics", topics=["tiered-gone"])
        self._change("delete_records", partition="tiered-0", before=3)
        time.sleep(2.0)

    def _compact(self) -> None:
        """Let the cleaner at what lies there; what is written after that is history again."""
        topics = ("__consumer_offsets", "__transaction_state", "__share_group_state")
        for topic in topics:
            self._set(
                "TOPIC",
                topic,
                **{name.replace(".", "_"): value for name, value in _CLEANED_AT_ONCE.items()},
            )
        self._open_producer("churning", "churning")
        for number in range(6):
            self._transaction("churning", "orders-0", commits=True)
            self._change("commit", group="by-hand", offsets={"orders-0": number})
            self._poll("classic-1", "classic-2", "modern-1", "share-1", records=1)
            time.sleep(1.0)
        for topic in topics:
            self._set("TOPIC", topic, *_CLEANED_AT_ONCE)
        for number in range(6):
            self._change("commit", group="by-hand", offsets={"orders-0": number, "orders-1": 1})
        self._change("delete_topics", topics=["short-lived"])
