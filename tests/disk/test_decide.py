"""What a file is, what was written lately, and whether a folder may go."""

import random
from dataclasses import replace

import pytest

from kafka_segments.kafka.broker_rules.start.metadata_facts import MetadataFacts
from kafka_segments.kafka.text.names import FolderState, PartitionFolder
from kafka_segments.verbs.find.disk.decide.growth import Growth, Written, full_in_ms, growth_of
from kafka_segments.verbs.find.disk.decide.kinds import (
    FolderPlace,
    What,
    Where,
    named_folder,
    place_below,
    what_is,
)
from kafka_segments.verbs.find.disk.decide.verdicts import (
    ClusterFacts,
    FolderFacts,
    LogCopy,
    MayGo,
    Reach,
    judge_folder,
)

B0, B7 = "00000000000000000000", "00000000000000000007"
HEX = "0123456789abcdef0123456789abcdef"
LOG = FolderPlace(Where.LOG, "/d", "t-0", PartitionFolder("t", 0, FolderState.LIVE))
DIR = FolderPlace(Where.LOG_DIR, "/d")
FULL = 10_485_760


@pytest.mark.parametrize(
    ("place", "name", "size", "what"),
    [
        (LOG, f"{B0}.log", 1, What.SEGMENTS),
        (LOG, f"{B0}.log.deleted", 1, What.DELETED),
        (LOG, f"{B0}.index.deleted", FULL, What.DELETED),
        (LOG, f"{B0}.snapshot.deleted", 1, What.DELETED),
        (LOG, f"{B0}.log.cleaned", 1, What.CLEANED),
        (LOG, f"{B0}.log.swap", 1, What.SWAPS),
        (LOG, f"{B0}.index", FULL, What.FULL_INDEXES),
        (LOG, f"{B0}.timeindex", FULL - 4, What.FULL_INDEXES),
        (LOG, f"{B0}.index", FULL - 8, What.INDEXES),
        (LOG, f"{B7}.index", FULL, What.INDEXES),  # of the active segment
        (LOG, f"{B0}.txnindex", 34, What.INDEXES),
        (LOG, f"{B0}.snapshot", 1, What.SNAPSHOTS),
        (LOG, f"{B0}-0000000001.checkpoint", 1, What.METADATA_SNAPSHOTS),
        (LOG, "leader-epoch-checkpoint", 1, What.CHECKPOINTS),
        (LOG, "partition.metadata", 1, What.CHECKPOINTS),
        (LOG, "quorum-state", 1, What.CHECKPOINTS),
        (LOG, "leader-epoch-checkpoint.tmp", 1, What.UNFINISHED),
        (DIR, "meta.properties.tmp", 1, What.UNFINISHED),
        (DIR, "replication-offset-checkpoint.tmp", 1, What.UNFINISHED),
        (DIR, ".kafka_cleanshutdown.tmp", 1, What.FOREIGN),
        (DIR, "notes.tmp", 1, What.FOREIGN),
        (LOG, f"{B0}.log.gz", 1, What.FOREIGN),
        (LOG, "app.log", 1, What.FOREIGN),
        (LOG, "7.log", 1, What.FOREIGN),
        (DIR, "meta.properties", 1, What.CHECKPOINTS),
        (DIR, ".lock", 0, What.CHECKPOINTS),
        (DIR, "server.log", 1, What.FOREIGN),
        (DIR, f"{B0}.log", 1, What.FOREIGN),
    ],
)
def test_a_file_is_what_its_name_and_folder_say(
    place: FolderPlace, name: str, size: int, what: What
) -> None:
    assert what_is(place, name, size, active_base=7) == what


@pytest.mark.parametrize(
    ("state", "what"),
    [
        (FolderState.DELETE, What.DELETE_FOLDERS),
        (FolderState.STRAY, What.STRAY_FOLDERS),
        (FolderState.FUTURE, What.FUTURE_FOLDERS),
    ],
)
def test_all_files_of_a_marked_folder_are_its_own(state: FolderState, what: What) -> None:
    place = LOG._replace(partition=PartitionFolder("t", 0, state))

    assert {what_is(place, name, 1, active_base=0) for name in (f"{B0}.log", "x")} == {what}


def test_folders_are_told_from_the_one_above_on() -> None:
    top = place_below(named_folder("/disks"), "/disks", ["node-1"], [])
    disk = place_below(top, "/disks/node-1", ["t-0", "lost+found", "remote-log-index-cache"], [])
    log = place_below(disk, "/disks/node-1/t-0", [], [f"{B0}.log"])
    marked = place_below(disk, f"/disks/node-1/t-1.{HEX}-stray", [], [])

    assert (disk.where, disk.log_dir) == (Where.LOG_DIR, "/disks/node-1")
    assert (log.where, log.log_dir, log.name) == (Where.LOG, "/disks/node-1", "t-0")
    assert marked.partition == PartitionFolder("t", 1, FolderState.STRAY)
    below = place_below(disk, "/disks/node-1/lost+found", [], ["x"])
    assert (below.where, below.name) == (Where.STRANGE, "lost+found")
    assert place_below(below, "/disks/node-1/lost+found/t-0", [], []).name == "lost+found"
    cache = place_below(disk, "/disks/node-1/remote-log-index-cache", [], ["1_x.index"])
    assert what_is(cache, "1_x.index", 1, active_base=-1) == What.INDEX_CACHE
    assert place_below(log, "/disks/node-1/t-0/old", [], []).where == Where.STRANGE


def test_a_log_that_is_named_alone_is_a_log() -> None:
    place = place_below(named_folder("/d/t-0"), "/d/t-0", [], [f"{B0}.log"])

    assert (place.where, place.log_dir, place.name) == (Where.LOG, "/d", "t-0")


@pytest.mark.parametrize("seed", range(50))
def test_what_was_written_lately_lies_between_both_bounds(seed: int) -> None:
    """Of a log that is written byte by byte, at moments that only this test knows."""
    rng = random.Random(seed)
    now, span = 1000, rng.randrange(1, 1000)
    writes = sorted(rng.randrange(1000) for _ in range(rng.randrange(1, 60)))
    segments, at = [], 0
    while at < len(writes):
        size = rng.randrange(1, 8)
        segments.append(Written(len(writes[at : at + size]), writes[at : at + size][-1]))
        at += size

    found = growth_of(segments, now_ms=now, span_ms=span)

    assert found.least_bytes <= sum(now - span <= write for write in writes) <= found.most_bytes


def test_a_disk_is_full_between_both_bounds() -> None:
    assert full_in_ms(1000, Growth(10, 20), span_ms=100) == (5000, 10_000)
    assert full_in_ms(1000, Growth(0, 20), span_ms=100) == (5000, None)
    assert full_in_ms(1000, Growth(), span_ms=100) == (None, None)


FACTS = MetadataFacts(
    {("a", 0): ((1, 2), ()), ("b", 0): ((2,), ())}, {"a": "t", "b": "t", "c": "other"}
)
WHOLE = replace(FACTS, ever={"a", "b", "c", "z"})
FOLDER = FolderFacts(
    LOG.partition or PartitionFolder("t", 0, FolderState.LIVE), "a", "", 1, Reach(5, 9)
)
STRAY = FOLDER.partition._replace(state=FolderState.STRAY)


@pytest.mark.parametrize(
    ("folder", "cluster", "may_go"),
    [
        (FOLDER, ClusterFacts(FACTS), MayGo.IN_USE),
        (FOLDER._replace(topic_id="z"), ClusterFacts(FACTS), MayGo.NO_TOPIC),
        (FOLDER._replace(topic_id="z"), ClusterFacts(WHOLE), MayGo.NO_TOPIC),
        (FOLDER._replace(topic_id="y"), ClusterFacts(WHOLE), MayGo.NOT_KNOWN),
        (FOLDER._replace(topic_id="c"), ClusterFacts(FACTS), MayGo.NOT_KNOWN),
        (FOLDER._replace(topic_id="b"), ClusterFacts(FACTS), MayGo.MOVED),
        (FOLDER._replace(topic_id=None, no_id="why"), ClusterFacts(FACTS), MayGo.NOT_KNOWN),
        (FOLDER._replace(node_id=None), ClusterFacts(FACTS), MayGo.NOT_KNOWN),
        (FOLDER, ClusterFacts(None, unknown="cut"), MayGo.NOT_KNOWN),
        (FOLDER._replace(partition=STRAY), ClusterFacts(FACTS), MayGo.NOT_KNOWN),
        (FOLDER._replace(partition=STRAY, topic_id="z"), ClusterFacts(FACTS), MayGo.NO_TOPIC),
        (FOLDER._replace(partition=STRAY, topic_id="y"), ClusterFacts(WHOLE), MayGo.NO_TOPIC),
        (
            FOLDER._replace(partition=FOLDER.partition._replace(state=FolderState.DELETE)),
            ClusterFacts(None),
            MayGo.BY_ITSELF,
        ),
    ],
)
def test_the_metadata_says_whose_a_folder_is(
    folder: FolderFacts, cluster: ClusterFacts, may_go: MayGo
) -> None:
    assert judge_folder(folder, cluster, ()).may_go == may_go


def test_a_topic_id_of_another_topic_is_no_evidence() -> None:
    facts = MetadataFacts({("c", 0): ((1,), ())}, {"c": "other"})

    verdict = judge_folder(FOLDER._replace(topic_id="c"), ClusterFacts(facts), ())

    assert verdict.may_go == MayGo.NOT_KNOWN
    assert "that of other" in verdict.why


@pytest.mark.parametrize(
    ("reach", "told"),
    [
        (Reach(5, 9), "/x/t-0 has its offsets 5 to 8"),
        (Reach(0, 20), "/x/t-0 has its offsets 5 to 8"),
        (Reach(6, 9), "no other folder given has all"),
        (Reach(5, 8), "no other folder given has all"),
        (Reach(0, None), "no other folder given has all"),
    ],
)
def test_a_copy_counts_where_it_has_both_ends(reach: Reach, told: str) -> None:
    gone = FOLDER._replace(topic_id="z")

    assert told in judge_folder(gone, ClusterFacts(FACTS), [LogCopy("/x/t-0", reach)]).why


@pytest.mark.parametrize(
    ("reach", "told"), [(Reach(5, None), "is not known"), (Reach(5, 5), "it has no offsets")]
)
def test_a_log_of_which_the_end_is_not_known_has_no_copy(reach: Reach, told: str) -> None:
    gone = FOLDER._replace(topic_id="z", reach=reach)

    assert told in judge_folder(gone, ClusterFacts(FACTS), [LogCopy("/x/t-0", Reach(0, 99))]).why
