from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from penstock.connectors.memory.generator import Generator
from penstock.connectors.offsets import STRETCH
from penstock.connectors.reader import NodeSource, Positions, Resume
from penstock.memory.arrow import batch_from_columns
from penstock.memory.layout import Layout
from penstock.memory.strings import StringPool
from penstock.query.errors import RunError
from penstock.sources import Columns, JsonLines, Rows, TcpLines
from penstock.spark.batches.stream_source import Range, StreamOrders, StreamReader, grouped, register

_FIELDS: Any = {"target": pa.int32(), "tag": pa.int32(), "seq": pa.int64(), "payload": pa.binary()}
MESSAGES = pa.schema(_FIELDS)


class Released(Positions):
    """Notes what will not be read again."""

    final = None

    def __init__(self) -> None:
        self.ends: list[Sequence[int]] = []

    def latest(self, start: Sequence[int], limit: int | None) -> list[int]:
        return [*start]

    def release(self, before: Sequence[int]) -> None:
        self.ends.append(before)


@pytest.mark.parametrize(("kept", "released"), [(0, [[1], [2], [3], [4]]), (3, [[1]])])
def test_what_the_newest_batches_have_read_is_kept_to_go_back(kept: int, released: list[list[int]]) -> None:
    source = Rows([], {"ts": "timestamp"})
    reader = StreamReader(StreamOrders("cars", source, b"", None, None, 1, None, None, kept))
    reader._opened = positions = Released()
    for end in range(1, 5):
        reader.commit({"p": [end]})
    assert positions.ends == released


@dataclass(frozen=True)
class Reading:
    """A task that says what it was asked to read and what it found there, as JSON."""

    source: NodeSource
    column: str

    def read(self, source_id: str, ranges: list[Range]) -> Iterator[pa.RecordBatch]:
        layout, strings = Layout(f for f in self.source.schema if f.name == self.column), StringPool()
        for one in ranges:
            resume = Resume(one.start, one.start)
            reader = self.source.open_range(one.partition, resume, one.end, layout, strings, one.hint)
            values: list[Any] = []
            while not reader.finished:
                columns = layout.allocate(100)
                count = reader.read(columns, 0, 100)
                values += batch_from_columns(columns, 0, count, layout, strings).column(0).to_pylist()
            place = [one.partition, one.start, one.end, one.final]
            message = {"source": source_id, "task": ranges[0].partition, "range": place, "values": values}
            payload = json.dumps(message).encode()
            yield pa.RecordBatch.from_pylist(
                [{"target": 0, "tag": 0, "seq": one.partition, "payload": payload}], MESSAGES
            )


Batches = dict[int, list[dict[str, Any]]]


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> Callable[..., Batches]:
    """Runs a source until nothing is there to be read, from the checkpoint that the run before left."""
    runs = iter(range(100))

    def run(
        source: NodeSource,
        column: str,
        max_events: int | None = None,
        max_tasks: int | None = None,
        fail_in: int | None = None,
        until_final: bool = False,
    ) -> Batches:
        name = f"test_source_{tmp_path.name}_{next(runs)}"
        register(
            spark,
            name,
            "cars",
            source.shipped(str(tmp_path / "shipped")),
            Reading(source.shipped(str(tmp_path / "shipped")), column),
            journal=str(tmp_path / "journal"),
            max_events=max_events,
            max_tasks=max_tasks,
        )
        batches: Batches = {}
        ended = Event()

        def keep(frame: DataFrame, number: int) -> None:
            rows = sorted(frame.collect(), key=lambda row: int(row.seq))
            if number == fail_in:
                raise RuntimeError("as asked")
            batches[number] = entries = [
                json.loads(row.payload) for row in sorted(rows, key=lambda row: row.seq)
            ]
            if any(entry["range"][3] for entry in entries):
                ended.set()

        writer = spark.readStream.format(name).load().writeStream.foreachBatch(keep)
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        if until_final:
            query = writer.start()
            assert ended.wait(60)
            query.processAllAvailable()
            query.stop()
        else:
            writer.trigger(availableNow=True).start().awaitTermination()
        return batches

    return run


def ranges_of(batches: Batches) -> dict[int, list[list[Any]]]:
    return {number: [entry["range"] for entry in entries] for number, entries in batches.items()}


def values_of(batches: Batches) -> list[Any]:
    return [value for number in sorted(batches) for entry in batches[number] for value in entry["values"]]


def test_a_limit_cuts_a_source_into_batches_and_the_last_one_is_final(stream: Callable[..., Batches]) -> None:
    batches = stream(Columns({"x": list(range(25))}), "x", max_events=10)
    assert ranges_of(batches) == {0: [[0, 0, 10, False]], 1: [[0, 10, 20, False]], 2: [[0, 20, 25, True]]}
    assert values_of(batches) == list(range(25))
    assert batches[0][0]["source"] == "cars"
    assert stream(Columns({"x": list(range(25))}), "x") == {}  # all has been read


def test_partitions_are_read_by_several_tasks(stream: Callable[..., Batches]) -> None:
    batches = stream(Columns({"x": list(range(9))}, partitions=4), "x", max_tasks=2)
    assert ranges_of(batches) == {0: [[0, 0, 3, True], [1, 0, 2, True], [2, 0, 2, True], [3, 0, 2, True]]}
    assert [entry["values"] for entry in batches[0]] == [[0, 4, 8], [1, 5], [2, 6], [3, 7]]
    assert len({entry["task"] for entry in batches[0]}) == 2


def test_a_partition_without_events_ends_in_the_first_batch(stream: Callable[..., Batches]) -> None:
    batches = stream(Rows([{"x": 7}], partitions=2, repeat=3), "x", max_events=2)
    assert ranges_of(batches) == {0: [[0, 0, 2, False], [1, 0, 0, True]], 1: [[0, 2, 3, True]]}


def test_a_run_goes_on_where_the_checkpoint_says(stream: Callable[..., Batches]) -> None:
    def fill(offset: int, n: int, columns: dict[str, Any], start: int) -> None:
        columns["x"][start : start + n] = np.arange(offset, offset + n)

    first = stream(Generator(fill, {"x": "int64"}, limit=50), "x")
    more = stream(Generator(fill, {"x": "int64"}, limit=80), "x", max_events=20)
    assert ranges_of(more) == {1: [[0, 50, 70, False]], 2: [[0, 70, 80, True]]}
    assert values_of(first) + values_of(more) == list(range(80))


def test_a_batch_that_failed_is_read_again(stream: Callable[..., Batches]) -> None:
    source = Columns({"x": list(range(25))}, rate=1_000_000)
    with pytest.raises(StreamingQueryException, match="as asked"):
        stream(source, "x", max_events=10, fail_in=0)
    again = stream(Columns({"x": list(range(25))}), "x", max_events=20)
    assert [one for entry in ranges_of(again).values() for one in entry][-1][2:] == [25, True]
    assert values_of(again) == list(range(25))


def test_large_columns_are_mapped_by_the_workers(stream: Callable[..., Batches], tmp_path: Path) -> None:
    source = Columns({"x": np.arange(200_000), "word": [f"w{i % 100}" for i in range(200_000)]}, repeat=2)
    batches = stream(source, "word", max_events=150_000)
    assert ranges_of(batches)[2] == [[0, 300_000, 400_000, True]]
    assert values_of(batches) == [f"w{i % 100}" for i in range(200_000)] * 2
    assert len(list((tmp_path / "shipped").iterdir())) == 2  # one for the source, one for the task


def test_a_watched_folder_is_read_in_the_order_of_finding(
    stream: Callable[..., Batches], tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()

    def write(name: str, *values: int) -> None:
        (folder / name).write_text("".join(f'{{"x": {value}}}\n' for value in values))

    source = JsonLines(folder, {"x": "int64"}, watch=True)
    write("m.jsonl", 1, 2)
    write("n.jsonl", 3)
    first = stream(source, "x", max_events=2)
    assert ranges_of(first) == {0: [[0, 0, 18, False]], 1: [[0, 18, 27, False]]}
    write("a.jsonl", 4, 5)
    write("z.jsonl", 6)
    (folder / "m.jsonl").unlink()
    second = stream(source, "x")
    assert ranges_of(second) == {2: [[0, 27, 54, False]]}
    write("b.jsonl", 7)
    assert values_of(first) + values_of(second) + values_of(stream(source, "x")) == [1, 2, 3, 4, 5, 6, 7]


def test_lines_from_a_connection_are_kept_beside_the_checkpoint(
    stream: Callable[..., Batches], tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)

        def send() -> None:
            peer, _ = server.accept()
            with peer:
                peer.sendall(b"".join(b'{"x": %d}\n' % number for number in range(5)))

        sender = Thread(target=send)
        sender.start()
        source = TcpLines({"x": "int64"}, port=server.getsockname()[1])
        batches = stream(source, "x", until_final=True)
        sender.join()
    assert values_of(batches) == list(range(5))
    assert [file.suffix for file in (tmp_path / "journal").iterdir()].count(".end") == 1
    assert stream(source, "x") == {}  # nobody is waited for again


def test_another_number_of_partitions_is_an_error_that_names_the_source(
    stream: Callable[..., Batches],
) -> None:
    stream(Columns({"x": list(range(8))}, partitions=2), "x")
    with pytest.raises(StreamingQueryException, match="source 'cars' had 2 partitions, now 3"):
        stream(Columns({"x": list(range(8))}, partitions=3), "x")


# -- without Spark ---------------------------------------------------------------------


def reader_of(
    source: NodeSource, max_events: int | None = None, max_tasks: int = 2, max_bytes: int | None = None
) -> StreamReader:
    return StreamReader(StreamOrders("cars", source, b"", None, max_events, max_tasks, None, max_bytes))


def test_the_engine_decides_about_the_limit() -> None:
    reader = reader_of(Columns({"x": list(range(30))}, partitions=2), max_events=10)
    assert reader.getDefaultReadLimit() == ReadMaxRows(10)
    start = reader.initialOffset()
    assert start == {"p": [0, 0]}
    assert reader.latestOffset(start, ReadMaxRows(7)) == {"p": [4, 3]}
    assert reader.latestOffset(start, ReadAllAvailable()) == {"p": [15, 15]}
    assert reader_of(Columns({"x": [1]})).getDefaultReadLimit() == ReadAllAvailable()


def test_a_limit_in_bytes_holds_for_every_kind_of_source(tmp_path: Path) -> None:
    numbers = Columns({"x": list(range(100)), "y": [0.5] * 100})
    texts = Columns({"x": ["a long word"] * 100}, partitions=2)
    generated = Generator(print, {"x": "int64", "y": "int32"}, limit=100)
    endless = Generator(print, {"x": "int64"})

    def most(source: NodeSource, max_bytes: int | None, max_events: int | None = None) -> list[int]:
        reader = reader_of(source, max_events, max_bytes=max_bytes)
        return reader.latestOffset(reader.initialOffset(), reader.getDefaultReadLimit())["p"]

    assert most(numbers, 160) == [10]
    assert most(numbers, 160, max_events=7) == [7]
    assert most(numbers, 160, max_events=20) == [10]
    assert most(numbers, 1) == [1]  # never none
    assert most(numbers, None) == [100]
    assert most(texts, 15 * 20) == [10, 10]  # 11 letters and where they end
    assert most(generated, 120) == [10]
    assert most(endless, 80) == [10]
    assert most(endless, 1 << 40) == most(endless, None) == [STRETCH]


def test_a_batch_tells_what_waits_behind_it() -> None:
    reader = reader_of(Columns({"x": list(range(30))}, partitions=2))
    first, second = (part.ranges[0] for part in reader.partitions({"p": [0, 0]}, {"p": [5, 5]}))
    assert (first.waiting, second.waiting) == (20, 0)


def test_no_range_no_task() -> None:
    reader = reader_of(Columns({"x": [1, 2]}))
    assert list(reader.partitions({"p": [1]}, {"p": [1]})) == []
    assert grouped([], 3) == []


def test_an_endless_source_ends_for_a_trigger_that_does() -> None:
    reader = reader_of(Columns({"x": [1]}, repeat=None))
    reader.prepareForTriggerAvailableNow()
    end = reader.latestOffset({"p": [5]}, ReadAllAvailable())
    assert end["p"][0] > 5
    assert reader.latestOffset(end, ReadAllAvailable()) == end


def test_a_source_that_became_shorter_is_an_error() -> None:
    with pytest.raises(RunError, match=r"source 'cars' became shorter: .* \[9\], it now ends at \[2\]"):
        reader_of(Columns({"x": [1, 2]})).latestOffset({"p": [9]}, ReadAllAvailable())


def test_a_task_may_say_how_many_of_it_there_are_to_be() -> None:
    source = Columns({"x": list(range(8))}, partitions=4)
    for parallel, expected in ((None, 2), (3, 3)):
        reader = StreamReader(
            StreamOrders("cars", source, b"", None, None, 2, lambda parallel=parallel: parallel)
        )
        assert len(reader.partitions({"p": [0] * 4}, {"p": [2] * 4})) == expected


def groups_of(lengths: Sequence[int], tasks: int) -> list[list[int]]:
    ranges = [Range(number, 0, length, False) for number, length in enumerate(lengths)]
    return [[one.partition for one in group] for group in grouped(ranges, tasks)]


def test_ranges_are_shared_out_evenly() -> None:
    assert groups_of([10, 10, 10], 5) == [[0], [1], [2]]
    assert groups_of([30, 10, 10, 10], 2) == [[0], [1, 2, 3]]
    assert groups_of([0, 0, 0, 0], 2) == [[0, 2], [1, 3]]
