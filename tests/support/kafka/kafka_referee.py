"""Kafka's own classes, asked from Python: one warm JVM that tests share.

The answers come from the JARs in ``jars/kafka``; the Java sources beside this file are compiled
once, into ``build/referee``, and again when they or the JARs change.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Literal, Self

Answer = dict[str, Any]

REPOSITORY = Path(__file__).resolve().parents[3]
KAFKA_JARS = REPOSITORY / "jars" / "kafka"
SOURCES = REPOSITORY / "tests" / "referee"
CLASSES = REPOSITORY / "build" / "referee"

DEFAULT_NOW_MS = 1_700_003_600_000
QUIET = ("-Dlog4j2.level=OFF", "-Dlog4j2.StatusLogger.level=OFF")


def _base64(values: Iterable[bytes]) -> list[str]:
    return [base64.b64encode(value).decode() for value in values]


class RefereeError(Exception):
    """The referee cannot start, stopped, or answered that it could not do what was asked."""


class Referee:
    """A JVM that recovers, generates, damages and reads segments with Kafka's own code.

    Start it with ``start()`` and end it with ``close()``, or use it in a ``with`` statement.
    It serves one request at a time.
    """

    def __init__(
        self,
        *,
        max_heap: str = "1g",
        stderr: Path | None = None,
        logging: Sequence[str] = QUIET,
        scratch: Path | None = None,
    ) -> None:
        """Prepare a referee; ``stderr`` names a file that keeps what the JVM prints there.

        ``scratch``: where it keeps producer states and epochs for a moment, None: as the JVM does.
        """
        self._max_heap = max_heap
        self._scratch = () if scratch is None else (f"-Djava.io.tmpdir={scratch}",)
        self._logging = logging
        self._stderr_path = stderr
        self._stderr: IO[bytes] | None = None
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def start(self) -> None:
        """Compile the sources if need be and start the JVM; a second call does nothing."""
        if self._process is not None:
            return
        java = _program("java")
        classes = _compiled_classes()
        self._stderr = self._open_stderr()
        self._process = subprocess.Popen(
            [
                *(java, f"-Xmx{self._max_heap}", *self._logging, *self._scratch),
                *("-cp", _class_path(classes), "Referee"),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            encoding="utf-8",
        )

    def close(self) -> None:
        """End the JVM."""
        process, self._process = self._process, None
        if process is not None:
            process.communicate()
        if self._stderr is not None:
            self._stderr.close()
            self._stderr = None

    def recover(
        self,
        directory: Path,
        index_interval_bytes: int = 4096,
        segment_index_bytes: int = 10_485_760,
        now_ms: int = DEFAULT_NOW_MS,
    ) -> list[Answer]:
        """Recover every segment of a partition directory in place: logs are cut, indexes written.

        Gives one answer a segment, in ascending order: ``baseOffset``, ``fileBytes``,
        ``validBytes``, ``truncatedBytes``, ``recoverReturned``, ``indexEntries``,
        ``timeIndexEntries``, ``largestTimestamp``, ``offsetOfLargestTimestamp``,
        ``firstBatchTimestamp``, ``nextOffset``; also ``caught`` where Kafka empties the segment.
        Where Kafka fails: ``baseOffset``, ``fileBytes``, ``threw`` and ``message`` alone, and no
        index files.
        """
        answer = self._ask(
            "recover",
            dir=str(directory),
            index_interval_bytes=index_interval_bytes,
            segment_index_bytes=segment_index_bytes,
            now_ms=now_ms,
        )
        segments: list[Answer] = answer["segments"]
        return segments

    def generate(
        self,
        directory: Path,
        seed: int,
        kind: Literal["v2", "legacy", "mixed", "transactions"] = "v2",
    ) -> Path:
        """Write 1 to 5 random, sound segments into ``directory``/t-0, and give that path."""
        answer = self._ask("generate", dir=str(directory), seed=seed, kind=kind)
        return Path(answer["partition"])

    def damage(self, directory: Path, seed: int) -> list[Answer]:
        """Spoil 0 to 2 segments of a partition directory in place, and tell how.

        Each answer holds ``file``, ``kind``, ``position`` (the first changed byte, -1: none),
        ``bytes_before`` and ``bytes_after``.
        """
        damage: list[Answer] = self._ask("damage", dir=str(directory), seed=seed)["damage"]
        return damage

    def lookup(
        self,
        directory: Path,
        base: int,
        offsets: Iterable[int] = (),
        timestamps: Iterable[int] = (),
    ) -> Answer:
        """Tell what Kafka reads in a segment's index files, which it does not touch.

        ``offsets`` holds (offset, position) for each offset asked, ``timestamps`` (timestamp,
        offset) for each timestamp, as lists; ``offset_index_sanity`` and ``time_index_sanity``
        hold what Kafka's sanity checks throw, or None; ``offset_index_entries`` and
        ``time_index_entries`` count the entries.
        """
        return self._ask(
            "lookup",
            dir=str(directory),
            base=base,
            offsets=list(offsets),
            timestamps=list(timestamps),
        )

    def cache_remote(self, directory: Path, base: int) -> Answer:
        """Have Kafka's cache of remote indexes take the index files in a directory.

        ``fails`` names the exception that a read of the segment ends in, None: it goes on.
        """
        return self._ask("cache_remote", dir=str(directory), base=base)

    def announce(self, uploads: Sequence[Answer], *, epoch: int, offset: int) -> str | None:
        """Announce remote segments one after another; gives the id that a broker reads from.

        An upload has id, start, end, event_ms and epochs (epoch as text to start offset).
        """
        answer = self._ask("announce", uploads=list(uploads), epoch=epoch, offset=offset)
        taken: str | None = answer["taken"]
        return taken

    def read_remote(self, values: Iterable[bytes], *, partitions: int) -> list[Answer]:
        """Read values of ``__remote_log_metadata``, a topic of so many partitions."""
        answer = self._ask("read_remote", values=_base64(values), partitions=partitions)
        records: list[Answer] = answer["records"]
        return records

    def remote_states(self, values: Iterable[bytes]) -> Answer:
        """Let a broker handle such values in turn; ``segments``: those it then knows, by id.

        ``refused``: how many values of each segment changed nothing.
        """
        return self._ask("remote_states", values=_base64(values))

    def remote_within(self, cases: Sequence[Answer]) -> list[bool]:
        """Say whether segments lie within lineages; a case has epochs, end, lineage, log_end."""
        within: list[bool] = self._ask("remote_within", cases=list(cases))["within"]
        return within

    def append(
        self,
        log: Path,
        directory: Path,
        *,
        restarts: Sequence[int] = (),
        closed: bool = True,
        index_interval_bytes: int = 4096,
        segment_index_bytes: int = 10_485_760,
    ) -> None:
        """Append the batches of a sound log, one a call, to a new segment in ``directory``.

        The segment is closed and opened again before the batches whose ordinals are in
        ``restarts``. Without ``closed`` its index files stay as a killed broker leaves them.
        """
        self._ask(
            "append",
            log=str(log),
            dir=str(directory),
            restarts=list(restarts),
            closed=closed,
            index_interval_bytes=index_interval_bytes,
            segment_index_bytes=segment_index_bytes,
        )

    def append_sets(
        self,
        log: Path,
        directory: Path,
        *,
        set_batches: int = 1,
        first_offsets: bool = False,
        record_offsets: bool = False,
        index_interval_bytes: int = 4096,
    ) -> None:
        """Copy a sound log to ``directory`` with the index files of older brokers.

        One check of the interval an append of ``set_batches`` batches, as before KAFKA-806.
        ``first_offsets``: the set's first offset, as up to 1.1, else its last. ``record_offsets``:
        the time index names the record, as a leader up to 3.6 did, else its batch's last offset.
        """
        self._ask(
            "append_sets",
            log=str(log),
            dir=str(directory),
            set_batches=set_batches,
            first_offsets=first_offsets,
            record_offsets=record_offsets,
            index_interval_bytes=index_interval_bytes,
            segment_index_bytes=10_485_760,
        )

    def load(self, log: Path, segment_index_bytes: int = 10_485_760) -> Answer:
        """Load a segment with its index files as after a clean stop, append to it and roll it.

        ``largestTimestamp``, ``nextOffset``, ``indexEntries``, ``timeIndexEntries``: what the
        broker takes from the files; ``sanity``, ``append``, ``roll``: the exception that each
        throws, or None. The segment changes: give a copy.
        """
        return self._ask(
            "load",
            log=str(log),
            index_interval_bytes=4096,
            segment_index_bytes=segment_index_bytes,
        )

    def truncate(
        self,
        directory: Path,
        base: int,
        offsets: Iterable[int],
        segment_index_bytes: int = 10_485_760,
    ) -> list[Answer]:
        """Truncate copies of a recovered segment, with its largest timestamp in memory.

        One answer an offset: ``log_bytes``, ``max_timestamp``, ``offset_of_max_timestamp``, and of
        ``offset_index`` and ``time_index`` the ``entries`` (hex), ``file_bytes``, ``max_entries``
        and ``is_full``.
        """
        answer = self._ask(
            "truncate",
            dir=str(directory),
            base=base,
            offsets=list(offsets),
            segment_index_bytes=segment_index_bytes,
        )
        truncated: list[Answer] = answer["truncated"]
        return truncated

    def roll(self, directory: Path, base: int, cases: Sequence[Answer]) -> list[bool]:
        """Tell for each case whether a recovered segment rolls at an append.

        A case holds ``segment_index_bytes``, ``segment_bytes``, ``segment_ms``, ``jitter_ms``,
        ``created_ms``, ``now_ms``, ``append_bytes``, ``append_timestamp_ms`` and
        ``append_last_offset``. The directory is only read.
        """
        answer = self._ask("roll", dir=str(directory), base=base, cases=list(cases))
        rolls: list[bool] = answer["rolls"]
        return rolls

    def load_log(
        self,
        directory: Path,
        *,
        is_clean: bool,
        recovery_point: int = 0,
        truncate_to: int = -1,
        log_start_offset: int = 0,
        now_ms: int = 0,
        index_interval_bytes: int = 4096,
        segment_index_bytes: int = 10_485_760,
    ) -> Answer:
        """Load a partition directory in place as a starting broker does, and close it in order.

        ``truncate_to`` truncates the log once it is loaded, -1 does not; ``log_start_offset`` is
        the one in the broker's checkpoint. Gives ``base_offsets`` and ``log_end_offset``. What a
        broker deletes a minute later keeps its ``.deleted``.
        """
        return self._ask(
            "load_log",
            dir=str(directory),
            is_clean=is_clean,
            recovery_point=recovery_point,
            truncate_to=truncate_to,
            log_start_offset=log_start_offset,
            now_ms=now_ms,
            index_interval_bytes=index_interval_bytes,
            segment_index_bytes=segment_index_bytes,
        )

    def load_groups(self, directory: Path) -> Answer:
        """Load a partition of ``__consumer_offsets`` as the group coordinator does.

        ``records``: how many were read; ``taken``: how many of them the coordinator was given;
        ``error``: why it gave up, None: it did not. The directory changes: give a copy.
        """
        return self._ask(
            "load_groups",
            dir=str(directory),
            is_clean=True,
            recovery_point=0,
            log_start_offset=0,
            now_ms=DEFAULT_NOW_MS,
            index_interval_bytes=4096,
            segment_index_bytes=1_048_576,
        )

    def records(self, log: Path, target: Path) -> None:
        """Write every record of a segment, as Kafka's classes read it, to a file of lines.

        Each holds offset, timestamp, key, value, then key and value of each header; bytes in hex,
        ``-`` for null, a space between.
        """
        self._ask("records", log=str(log), target=str(target))

    def consume(self, log: Path) -> Answer:
        """Read a segment as a consumer reads what it has fetched.

        Gives ``bad``, the first offset, the one behind the last and the class that is thrown of
        each batch that it cannot read; ``stuck``, whether it ends at bytes that are no batch;
        ``records`` that it could read, those of control batches not counted; ``next``, the offset
        behind the last batch.
        """
        return self._ask("consume", log=str(log))

    def clean(self, log: Path, target: Path) -> int:
        """Write a segment with its messages v0 and v1 as the log cleaner rewrites them.

        No record is removed, no delete horizon set, batches v2 are copied. Gives how many
        messages and sets were rewritten.
        """
        rewritten: int = self._ask("clean", log=str(log), target=str(target))["rewritten"]
        return rewritten

    def clean_log(
        self,
        directory: Path,
        *,
        first_dirty: int,
        now_ms: int,
        delete_retention_ms: int = 1000,
        map_bytes: int = 1 << 20,
        is_clean: bool = False,
    ) -> Answer:
        """Let the log cleaner at a log once, from an offset up to the active segment.

        ``is_clean``: the log is loaded as after a clean stop, so nothing of it is recovered.

        Gives ``clean``, the offset up to which it is clean then, and the ``records``,
        ``tombstones`` and ``markers`` that are left; or what it ``throws``.
        """
        return self._ask(
            "clean_log",
            dir=str(directory),
            first_dirty=first_dirty,
            now=now_ms,
            delete_retention_ms=delete_retention_ms,
            map_bytes=map_bytes,
            is_clean=is_clean,
        )

    def pick_logs_to_clean(self, directory: Path, *, seed: int, logs: int, now_ms: int) -> Answer:
        """Draw compacted logs into a log directory, and have the cleaner's manager choose.

        Gives ``logs``, by topic what it makes of each: ``config``, ``first_dirty``, ``until``,
        ``clean_bytes``, ``cleanable_bytes``, ``overdue_ms``, ``bases``; and ``picks``, the topics
        that it would clean one after another, each with its ratio.
        """
        return self._ask("cleaner_picks", dir=str(directory), seed=seed, logs=logs, now=now_ms)

    def write_commits(self, commits: Sequence[Answer], partitions: int = 50) -> list[Answer]:
        """Write records of ``__consumer_offsets`` as the group coordinator does.

        A commit holds ``group``, ``topic``, ``partition``, ``offset``, ``metadata``,
        ``commit_timestamp_ms``, the ``version`` of its value, and ``leader_epoch``,
        ``expire_timestamp_ms``, ``topic_id`` (hex) where that has them. A record holds ``key`` and
        ``value`` in hex, and the ``partition`` of its group.
        """
        answer = self._ask("write_commits", commits=list(commits), partitions=partitions)
        records: list[Answer] = answer["records"]
        return records

    def read_commits(self, records: Sequence[tuple[bytes, bytes]]) -> list[Answer]:
        """Read keys and values as the group coordinator does; ``error`` where it refuses."""
        asked = [{"key": key.hex(), "value": value.hex()} for key, value in records]
        commits: list[Answer] = self._ask("read_commits", records=asked)["commits"]
        return commits

    def lags(self, offsets: Sequence[int], ends: Sequence[int]) -> list[int | None]:
        """Give what kafka-consumer-groups prints as LAG of committed offsets; None: nothing."""
        lags: list[int | None] = self._ask("lags", offsets=list(offsets), ends=list(ends))["lags"]
        return lags

    def message_types(self) -> list[Answer]:
        """List the generated messages in the JARs that may lie in a log.

        ``name``, ``topic`` (None: of control records), ``type_id``, ``lowest``, ``highest``, and
        ``fresh``: the JSON, in the highest version, of one whose fields have their defaults.
        """
        types: list[Answer] = self._ask("message_types")["types"]
        return types

    def draw_messages(self, seed: int, rounds: int) -> list[Answer]:
        """Write one random record of each type and version, as many times as there are rounds.

        A record holds ``topic``, ``kind``, ``type_id``, ``version``, ``key`` and ``value`` in hex,
        ``key_json`` and ``value_json``; None where there is none.
        """
        records: list[Answer] = self._ask("draw_messages", seed=seed, rounds=rounds)["records"]
        return records

    def read_messages(self, messages: Iterable[tuple[str, int, bytes]]) -> list[Answer]:
        """Read messages, each a name, a version and bytes.

        Gives ``json`` and ``left`` (how many bytes follow) of each; ``error`` where Kafka throws.
        """
        asked = [{"name": name, "version": n, "data": data.hex()} for name, n, data in messages]
        answers: list[Answer] = self._ask("read_messages", messages=asked)["messages"]
        return answers

    def time_recover(
        self,
        files: Sequence[Path],
        threads: int = 1,
        index_interval_bytes: int = 4096,
        warmup: int = 1,
        rounds: int = 3,
    ) -> Answer:
        """Time ``LogSegment.recover()`` on sound logs where they lie; they are only read.

        ``seconds`` holds the wall-clock time of each round, ``bytes`` the size of all logs.
        """
        return self._ask(
            "time_recover",
            files=[str(file.absolute()) for file in files],
            threads=threads,
            index_interval_bytes=index_interval_bytes,
            warmup=warmup,
            rounds=rounds,
        )

    def retention(self, logs: Iterable[Answer]) -> list[list[int]]:
        """Load logs and run ``UnifiedLog.deleteOldSegments``; gives the base offsets left of each.

        A log holds ``segments`` (``base``, ``next``, ``bytes``, ``timestamp``, ``mtime`` each),
        ``high_watermark`` (None: the log's end), ``log_start``, ``highest_remote`` (None:
        nothing), ``now`` and ``config`` (the topic's, by Kafka's own keys).
        """
        left: list[list[int]] = self._ask("retention", logs=list(logs))["left"]
        return left

    def config_types(self, names: Sequence[str]) -> dict[str, bool]:
        """Say of each config of a broker that Kafka knows, and of these, if it is sensitive."""
        sensitive: dict[str, bool] = self._ask("config_types", names=list(names))["sensitive"]
        return sensitive

    def internal_records(self, topic: str, log: Path, target: Path) -> None:
        """Write the records of an internal topic's segment or snapshot as lines of JSON.

        Each has ``offset``, ``timestamp_ms``, ``is_control``, ``kind``, ``value_version``,
        ``value`` and, of coordinators, ``key_version`` and ``key``, as Kafka writes JSON. A
        record that Kafka cannot read has ``problem``.
        """
        self._ask("internal_records", topic=topic, log=str(log), target=str(target))

    def metadata_images(
        self, folder: Path, offsets: Iterable[int], target: Path, *, snapshot: str | None = None
    ) -> None:
        """Write the image of a cluster's metadata as of ascending offsets, a line of JSON each.

        The replay of a folder ``__cluster_metadata-0`` begins with its log, or with a snapshot.
        """
        self._ask(
            "metadata_images",
            dir=str(folder),
            offsets=list(offsets),
            target=str(target),
            snapshot=snapshot,
        )

    def _ask(self, command: str, **fields: object) -> Answer:
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            raise RefereeError("the referee is not started")
        try:
            process.stdin.write(json.dumps({"command": command, **fields}) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        except BaseException:
            process.kill()  # or the next request would get this one's answer
            raise
        if not line:
            raise RefereeError(f"the referee's JVM stopped: {self._last_words()}")
        answer: Answer = json.loads(line)
        if not answer.pop("ok"):
            raise RefereeError(f"{command}: {answer['error']}")
        return answer

    def _open_stderr(self) -> IO[bytes]:
        if self._stderr_path is None:
            return tempfile.TemporaryFile()
        return self._stderr_path.open("w+b")

    def _last_words(self) -> str:
        if self._stderr is None:
            return ""
        self._stderr.seek(0)
        return self._stderr.read()[-2000:].decode("utf-8", "replace").strip()


def _program(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise RefereeError(f"no {name} on the PATH: install JDK 17 or later, run `make jars-test`")
    return path


def _class_path(*folders: Path) -> str:
    return os.pathsep.join([*map(str, folders), str(KAFKA_JARS / "*")])


def _compiled_classes() -> Path:
    """Give the folder of the compiled sources; compile them where it is not there."""
    sources = sorted(SOURCES.glob("*.java"))
    jars = sorted(KAFKA_JARS.glob("*.jar"))
    if not any(jar.name.startswith("kafka-storage-") for jar in jars):
        raise RefereeError("Kafka's JARs are missing from jars/kafka: run `make jars-test`")
    classes = CLASSES / _fingerprint(sources, jars)
    if not classes.is_dir():
        _compile(sources, classes)
    return classes


def _fingerprint(sources: list[Path], jars: list[Path]) -> str:
    digest = hashlib.sha256()
    for source in sources:
        digest.update(source.name.encode() + source.read_bytes())
    for jar in jars:
        digest.update(jar.name.encode())
    return digest.hexdigest()[:16]


def _compile(sources: list[Path], classes: Path) -> None:
    """Compile into a folder that appears whole, as several test processes may do it at once."""
    javac = _program("javac")
    CLASSES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CLASSES) as scratch:
        output = Path(scratch) / "classes"
        compiler = subprocess.run(
            [javac, "-nowarn", "-d", str(output), "-cp", _class_path(), *map(str, sources)],
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        if compiler.returncode != 0:
            raise RefereeError(f"the referee does not compile: {compiler.stderr.strip()}")
        try:
            output.rename(classes)
        except OSError:
            if not classes.is_dir():
                raise
