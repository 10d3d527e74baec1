"""The four RIoTBench topologies as EdgeWise runs them (edgewise figure 6), built into an app."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from lab.workloads.riot import senml
from lab.workloads.riot.block_average import block_averaged
from lab.workloads.riot.bloom import KnownSensors, known_only, unknown_blanked
from lab.workloads.riot.cleaning import annotated, joined, range_filtered
from lab.workloads.riot.data import source as messages_source
from lab.workloads.riot.distinct_count import distinct_sensors
from lab.workloads.riot.instances import collected, dealt, instance_names
from lab.workloads.riot.interpolation import interpolated
from lab.workloads.riot.kalman import kalman_filtered
from lab.workloads.riot.prediction import classified, errors_estimated, predicted
from lab.workloads.riot.second_moment import second_moments
from lab.workloads.riot.sensors import City
from lab.workloads.riot.settings import RiotSettings
from lab.workloads.riot.sliding_regression import regressed
from lab.workloads.riot.table_insert import TableInsert
from lab.workloads.riot.training_rows import rows_read, timer, write_training_table
from penstock.query.connectors import Sink, Source
from penstock.query.errors import QueryError
from penstock.query.stream.stream import Stream

if TYPE_CHECKING:
    from penstock.app import App
    from penstock.connectors.memory.generator import Generator
    from penstock.connectors.pacing import Rate

#: How many instances an operator has; those not named have one.
INSTANCES: dict[str, dict[str, int]] = {
    "pred": {"parse": 2, "publish": 3},
    "stats": {"publish": 3},
    "etl": {},
    "train": {"read": 2, "train_regression": 2, "train_tree": 2},
}
TOPOLOGIES = tuple(INSTANCES)

#: Gives every instance of the publishing operator a sink of its own, by its number.
Publish = Callable[[int], Sink]


def topology(
    app: App,
    name: str,
    source: Source,
    publish: Publish,
    *,
    settings: RiotSettings | None = None,
    folder: str | Path | None = None,
    unreadable: Sink | None = None,
) -> None:
    """Builds one topology into an app: ``pred``, ``stats``, ``etl`` or ``train``.

    ``source`` gives its input, usually ``input_of(name, settings)``; ``settings`` must be those of the
    source, since they say which sensors are known. ``folder`` is where ETL keeps its table and TRAIN
    its training rows, which are made there if they are not yet. ``unreadable`` gets the lines that are no
    SenML, with the reason; without it they are left out.
    """
    if name not in INSTANCES:
        raise QueryError(f"no topology '{name}'", hint=f"topologies are {', '.join(TOPOLOGIES)}")
    if folder is None and name in ("etl", "train"):
        raise QueryError(f"topology '{name}' needs a folder for its table", hint="give folder='...'")
    settings, place = settings or RiotSettings(), Path(folder or ".")
    events = app.source(name, source, event_time="ts")
    if unreadable is not None and name != "train":
        app.sink("unreadable_lines", senml.unreadable(events), unreadable)
    match name:
        case "pred":
            results = pred(events)
        case "stats":
            results = stats(events, settings)
        case "etl":
            messages = cleaned(events, settings)
            app.sink("table_insert", messages, TableInsert(place / "messages.sqlite", overwrite=True))
            results = senml.encoded(messages)
        case _:
            results = train(events, training_table(place, settings))
    _published(app, results, publish, INSTANCES[name].get("publish", 1))


def input_of(
    name: str, settings: RiotSettings, limit: int | None = None, rate: Rate | None = None
) -> Generator:
    """The generated input of a topology: row ranges for ``train``, messages for the others."""
    return timer(settings, limit, rate) if name == "train" else messages_source(settings, limit, rate)


def pred(lines: Stream) -> Stream:
    """Predictive analytics: a class for each message, and how wrong the predicted air quality is."""
    messages = _parsed(lines)
    errors = errors_estimated(predicted(messages), block_averaged(messages))
    return classified(messages).union(errors, name="results")


def stats(lines: Stream, settings: RiotSettings) -> Stream:
    """Statistical summaries: trends of filtered readings, second moments, and how many sensors there are."""
    known = KnownSensors(City(settings).metadata()["sensor"])
    observations = known_only(senml.projected(lines), known)
    trends = regressed(kalman_filtered(observations))
    return trends.union(second_moments(observations), distinct_sensors(observations), name="results")


def cleaned(lines: Stream, settings: RiotSettings) -> Stream:
    """Extract and transform: messages in range, without gaps, and annotated."""
    metadata = City(settings).metadata()
    fields = range_filtered(senml.fields(lines))
    fields = unknown_blanked(fields, KnownSensors(metadata["sensor"]))
    return annotated(joined(interpolated(fields)), metadata)


def train(ranges: Stream, table: Path) -> Stream:
    """Model training: for each range of rows a linear regression and a decision tree, by name and content."""
    from lab.workloads.riot.trainers import quartile_annotated, regression_trained, tree_trained

    counts = INSTANCES["train"]
    reading = [
        rows_read(share, table, name=name) for share, name in _instances(ranges, "read", counts["read"])
    ]
    rows = collected(reading, name="rows")
    regressions = [
        regression_trained(share, name=name)
        for share, name in _instances(rows, "train_regression", counts["train_regression"])
    ]
    trees = [
        tree_trained(share, name=name)
        for share, name in _instances(quartile_annotated(rows), "train_tree", counts["train_tree"])
    ]
    return collected([*regressions, *trees], name="models")


def training_table(folder: Path, settings: RiotSettings) -> Path:
    """The table of training rows in a folder; made if it is not there."""
    path = folder / f"training-{settings.seed}-{settings.table_rows}.sqlite"
    return path if path.exists() else write_training_table(path, settings)


def _parsed(lines: Stream) -> Stream:
    shares = _instances(lines, "parse", INSTANCES["pred"]["parse"])
    return collected([senml.parsed(share, name=name) for share, name in shares], name="messages")


def _instances(stream: Stream, name: str, count: int) -> list[tuple[Stream, str]]:
    return list(zip(dealt(stream, count, name=name), instance_names(name, count), strict=True))


def _published(app: App, results: Stream, publish: Publish, count: int) -> None:
    for instance, (share, name) in enumerate(_instances(results, "publish", count)):
        app.sink(name, share, publish(instance))
