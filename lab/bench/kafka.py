"""``penstock bench kafka``: JSON of a topic into a filter and a keyed window, beside a bare client."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Any

import orjson
from confluent_kafka import Consumer, TopicPartition

import penstock as ps
from lab.bench.measuring.report import Options, Report, median, progress
from lab.brokers.kafka import Broker, kafka_broker
from penstock.query.errors import PenstockError

_CORES = 2  # and partitions
_EVENTS, _FULL_EVENTS = 600_000, 3_000_000
_ROUNDS = 3
_WINDOW_US = 10_000_000
_SCHEMA = {"ts": "timestamp", "page": "int64", "kind": "string", "amount": "float64"}

#: By page and window: how many, and their sum.
Answer = dict[tuple[int, int], tuple[int, float]]


def run(options: Options) -> Report:
    """The same topic is read in turn by both, from its beginning to its end."""
    events = options.events or (_FULL_EVENTS if options.full else _EVENTS)
    with kafka_broker() as broker:
        topic = broker.create_topic("bench", _CORES)
        progress(f"kafka: {events:,} records in {_CORES} partitions")
        _fill(broker, topic, events)
        times: dict[str, list[float]] = {"penstock": [], "client": []}
        _penstock(broker, topic)  # compiles
        for number in range(_ROUNDS):
            progress(f"kafka: round {number + 1} of {_ROUNDS}")
            seconds, answer = _penstock(broker, topic)
            bare_seconds, expected = _client(broker, topic, events)
            if {key: count for key, (count, _) in answer.items()} != {
                key: count for key, (count, _) in expected.items()
            }:
                raise PenstockError("penstock and the bare client give different answers")
            times["penstock"].append(seconds)
            times["client"].append(bare_seconds)
    rates = {name: events / median(spent) / 1e6 for name, spent in times.items()}
    ratios = {"penstock_over_client": rates["penstock"] / rates["client"]}
    settings = {"events": events, "cores": _CORES, "rounds": _ROUNDS}
    return Report(name="kafka", settings=settings, figures={"million_events_per_s": rates}, ratios=ratios)


def _fill(broker: Broker, topic: str, events: int) -> None:
    producer = broker.producer({"linger.ms": 50, "batch.num.messages": 10_000})
    for number in range(events):
        kind = ("view", "click", "buy")[number % 3]
        amount = number * 37 % 1_000 / 10
        value = orjson.dumps({"ts": number * 100, "page": number % 1_009, "kind": kind, "amount": amount})
        while True:
            try:
                producer.produce(topic, value, partition=number % _CORES)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush()


def _penstock(broker: Broker, topic: str) -> tuple[float, Answer]:
    app = ps.App("bench")
    source = ps.sources.Kafka(topic, _SCHEMA, servers=broker.servers, until="latest")
    events = app.source("events", source, event_time="ts")
    bought = events.filter((ps.col("kind") == "buy") & (ps.col("amount") > 20))
    totals = bought.key_by("page").window(ps.tumbling("10s")).agg(count=ps.count(), amount=ps.sum("amount"))
    sink = ps.sinks.Memory()
    app.sink("totals", totals, sink)
    begun = time.perf_counter()
    app.run(on=ps.Node(workers=_CORES))
    seconds = time.perf_counter() - begun
    rows = sink.rows()
    return seconds, {
        (row["page"], row["window_start"] // _WINDOW_US): (row["count"], row["amount"]) for row in rows
    }


def _client(broker: Broker, topic: str, events: int) -> tuple[float, Answer]:
    """A process for each partition; the time of the slower one, from its first question on."""
    command = [sys.executable, "-m", "lab.bench.kafka", broker.servers, topic, str(events // _CORES)]
    processes = [
        subprocess.Popen([*command, str(number)], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)
        for number in range(_CORES)
    ]
    for process in processes:
        assert process.stdout is not None
        process.stdout.readline()  # it has loaded everything
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    answer: Answer = {}
    slowest = 0.0
    for process in processes:
        output, _ = process.communicate()
        seconds, rows = json.loads(output)
        slowest = max(slowest, seconds)
        for page, window, count, amount in rows:
            before = answer.get((page, window), (0, 0.0))
            answer[page, window] = (before[0] + count, before[1] + amount)
    return slowest, answer


def _read(servers: str, topic: str, events: int, partition: int) -> tuple[float, list[tuple[Any, ...]]]:
    """What somebody would write who has a client and a parser only."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "bench"})
    begun = time.perf_counter()
    consumer.assign([TopicPartition(topic, partition, 0)])
    totals: dict[tuple[int, int], list[Any]] = {}
    loads = orjson.loads
    left = events
    while left:
        messages = consumer.consume(min(10_000, left), 0.5)
        left -= len(messages)
        for message in messages:
            event = loads(message.value() or b"")
            if event["kind"] == "buy" and event["amount"] > 20:
                key = (event["page"], event["ts"] // _WINDOW_US)
                total = totals.get(key)
                if total is None:
                    totals[key] = [1, event["amount"]]
                else:
                    total[0] += 1
                    total[1] += event["amount"]
    seconds = time.perf_counter() - begun
    consumer.close()
    return seconds, [(*key, *total) for key, total in totals.items()]


if __name__ == "__main__":
    print("ready", flush=True)
    sys.stdin.readline()
    print(json.dumps(_read(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))))
