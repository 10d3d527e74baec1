"""The one face: an app collects queries over shared streams, and a runtime runs the graph they become."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, overload

from penstock.metrics.silence import Silence, meetings
from penstock.metrics.summary import Outcome
from penstock.metrics.watch import PROGRESS_EVERY_S, Watch
from penstock.query.builder import GraphBuilder
from penstock.query.connectors import Sink, Source
from penstock.query.durations import Duration
from penstock.query.errors import QueryError, Writing
from penstock.query.explain import explain_mermaid, explain_text
from penstock.query.extras import Extra, needed
from penstock.query.graph import Graph
from penstock.query.misuse import public_names, told, unknown_name
from penstock.query.step import check_name
from penstock.query.stream.stream import Stream

if TYPE_CHECKING:
    from penstock.spark.batches.summary import SparkSummary


class Runtime(Protocol[Outcome]):
    """What can run a graph: ``penstock.Spark`` and ``penstock.Node``."""

    def run(self, graph: Graph, *, name: str, watch: Watch) -> Outcome:
        """Runs to the end, and says what the run came to; ``watch`` hears how it goes."""
        ...


class Teller(Protocol):
    """What a run tells of itself while it goes on: ``penstock.Service``."""

    @property
    def progress_every_s(self) -> float: ...

    def open(self, watch: Watch) -> AbstractContextManager[None]: ...


class Launch(Protocol):
    """What an app is run with by whoever runs its file: it goes before what the app itself says."""

    @property
    def service(self) -> Teller | None: ...

    def runtime(self, own: Runtime[Any] | None) -> Runtime[Any] | None: ...


_launch: ContextVar[Launch | None] = ContextVar("launch", default=None)


@contextmanager
def launched(launch: Launch) -> Iterator[None]:
    """Inside ``with``, apps are run so."""
    token = _launch.set(launch)
    try:
        yield
    finally:
        _launch.reset(token)


@told
class App:
    """Continuous queries over shared streams.

    >>> app = App("traffic")
    >>> app
    <App 'traffic': 0 sources, 0 sinks>
    """

    def __init__(self, name: str) -> None:
        with Writing("App", name):
            self.name = check_name(name, "an app's name")
        self._builder = GraphBuilder(name)

    def source(self, name: str, source: Source, event_time: str, lateness: Duration = "0s") -> Stream:
        """A stream of a source's events.

        ``event_time`` names the column with each event's time, a timestamp without nulls; ``lateness`` is
        how far behind the latest event of its partition an event may come and still count.
        """
        return self._builder.add_source(name, source, event_time, lateness)

    def sink(self, name: str, stream: Stream, sink: Sink) -> None:
        """A query: where the events of a stream go. Its name is the query's name in metrics."""
        self._builder.add_sink(name, stream, sink)

    def graph(self, share: bool = True) -> Graph:
        """The graph of all queries; with ``share`` the same sub-plan of several queries is one operator."""
        return self._builder.build(share)

    def explain(self, format: str = "text", share: bool = True, on: Runtime[Any] | None = None) -> str:
        """The graph as ``"text"`` or as a ``"mermaid"`` flowchart, with shared operators marked.

        The text says where each operator runs on Spark, or on the runtime ``on``.
        """
        with Writing("explain"):
            if format == "text":
                graph = self.graph(share)
                return explain_text(graph, f"app '{self.name}'", _places(on, graph))
            if format == "mermaid":
                return explain_mermaid(self.graph(share))
            raise QueryError("unknown format", detail=f"got {format!r}", hint="write 'text' or 'mermaid'")

    @overload
    def run(self, on: None = None, *, share: bool = True, service: Teller | None = None) -> SparkSummary: ...

    @overload
    def run(self, on: Runtime[Outcome], *, share: bool = True, service: Teller | None = None) -> Outcome: ...

    def run(
        self, on: Runtime[Any] | None = None, *, share: bool = True, service: Teller | None = None
    ) -> Any:
        """Runs all queries until their sources end, Ctrl-C or SIGTERM, on ``on``; without one on Spark,
        embedded in this process. A ``service`` tells how it goes, by logs and pages."""
        with Writing("run"):
            if not self._builder.sink_names:
                raise QueryError(
                    "the app has no sinks",
                    detail=f"app '{self.name}' has nothing to do",
                    hint="add app.sink(name, stream, sink)",
                )
            if on is not None and (isinstance(on, type) or not callable(getattr(on, "run", None))):
                raise QueryError("not a runtime", detail=f"got {on!r}", hint="write on=ps.Node(workers=2)")
            graph = self.graph(share)
        launch = _launch.get()
        if launch is not None:
            on, service = launch.runtime(on), launch.service
        return self._run_watched(graph, on or _default_runtime(), service)

    def _run_watched(self, graph: Graph, runtime: Runtime[Any], service: Teller | None) -> Any:
        every_s = PROGRESS_EVERY_S if service is None else service.progress_every_s
        silence = Silence(meetings(graph))
        watch = Watch(self.name, type(runtime).__name__, silence=silence, progress_every_s=every_s)
        with nullcontext() if service is None else service.open(watch):
            watch.starting(len(self._builder.sink_names), len(graph))
            try:
                summary = runtime.run(graph, name=self.name, watch=watch)
            except BaseException as error:
                watch.failed(error)
                raise
            watch.ended(summary)
            return summary

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("_"):
                raise AttributeError(name)
            raise unknown_name("App", "an app has", name, public_names(type(self)))

    def __repr__(self) -> str:
        builder = self._builder
        return f"<App '{self.name}': {len(builder.source_names)} sources, {len(builder.sink_names)} sinks>"


def _default_runtime() -> Runtime[Any]:
    with needed(Extra.SPARK, "a run without on=", "write app.run(on=ps.Node())"):
        from penstock.spark.runtime import Spark

    return Spark()


def _places(on: Runtime[Any] | None, graph: Graph) -> Mapping[str, str]:
    if on is not None:
        return getattr(on, "places", lambda graph: {})(graph)
    try:
        from penstock.spark.places import places
    except ModuleNotFoundError:  # Spark is not installed: nothing runs there
        return {}
    return places(graph)
