"""Pages of a run: figures for Prometheus, whether it lives, whether it is ready."""

from __future__ import annotations

import hmac
import json
import logging
import threading
from collections.abc import Callable, Iterable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType

from penstock.metrics.watch import Phase, Standing, Watch
from penstock.query.errors import PenstockError
from penstock.query.extras import Extra, needed

with needed(Extra.SERVICE, "the pages of a service", "leave port out"):
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
    from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
    from prometheus_client.registry import Collector

_log = logging.getLogger(__name__)

_TIMEOUT_S = 10.0  # for a request to be said
_JSON = "application/json"

Answer = tuple[HTTPStatus, str, bytes]


class Pages:
    """Inside ``with``, pages of the run that is watched; ``port`` is where they are."""

    def __init__(self, watch: Watch, host: str, port: int, token: str | None = None) -> None:
        answers = Answers(watch)
        try:
            self._server = ThreadingHTTPServer((host, port), _handler(answers.of, token))
        except OSError as error:
            raise PenstockError(
                f"the pages of the service cannot be opened: {host}:{port}: {error.strerror or error}; "
                "take another port, or 0 for a free one"
            ) from None
        self._server.daemon_threads = True
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, name="penstock-pages", daemon=True)
        self._host = host

    def __enter__(self) -> Pages:
        self._thread.start()
        _log.info("metrics, health and readiness are at http://%s:%d", self._host, self.port)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class Answers:
    """What the pages say, by path."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._registry = CollectorRegistry()
        self._registry.register(_Figures(watch))

    def of(self, path: str) -> Answer:
        """The page at a path."""
        standing = self._watch.standing
        match path.partition("?")[0]:
            case "/metrics":
                return HTTPStatus.OK, CONTENT_TYPE_LATEST, generate_latest(self._registry)
            case "/health":
                return _standing_page(standing, standing.state is not Phase.FAILED)
            case "/ready":
                return _standing_page(standing, standing.state is Phase.READY)
            case _:
                pages = b"/metrics /health /ready\n"
                return HTTPStatus.NOT_FOUND, "text/plain", pages


def _standing_page(standing: Standing, is_well: bool) -> Answer:
    said = {
        "run": standing.name,
        "runtime": standing.runtime,
        "state": standing.state.value,
        "elapsed_s": round(standing.elapsed_s, 3),
    }
    if standing.error:
        said["error"] = standing.error
    status = HTTPStatus.OK if is_well else HTTPStatus.SERVICE_UNAVAILABLE
    return status, _JSON, json.dumps(said).encode() + b"\n"


class _Figures(Collector):
    """The run as Prometheus reads it, taken when it is asked for."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def collect(self) -> Iterable[Metric]:
        standing = self._watch.standing
        totals, run = standing.totals, (standing.name,)
        state = GaugeMetricFamily(
            "penstock_run_state", "1 for the state that the run is in", labels=["run", "state"]
        )
        for one in Phase:
            state.add_metric((*run, one.value), float(one is standing.state))
        yield state
        elapsed = GaugeMetricFamily("penstock_run_seconds", "How long the run has gone on", labels=["run"])
        elapsed.add_metric(run, standing.elapsed_s)
        yield elapsed
        waiting = GaugeMetricFamily(
            "penstock_events_waiting", "Events that are there and not processed yet", labels=["run"]
        )
        waiting.add_metric(run, totals.waiting)
        yield waiting
        for name, text, value in (
            ("penstock_events_read", "Events that sources have read", totals.read),
            ("penstock_events_late", "Events that came too late for windows and joins", totals.late),
            ("penstock_events_failed", "Events that functions failed for, set aside", totals.failed),
            ("penstock_bad_records", "Records that could not be read", totals.bad_records),
        ):
            counter = CounterMetricFamily(name, text, labels=["run"])
            counter.add_metric(run, value)
            yield counter
        written = CounterMetricFamily(
            "penstock_rows_written", "Rows that a query has written", labels=["run", "query"]
        )
        for query, rows in totals.written_by_query.items():
            written.add_metric((*run, query), rows)
        yield written


def _handler(answer: Callable[[str], Answer], token: str | None) -> type[BaseHTTPRequestHandler]:
    wanted = None if token is None else f"Bearer {token}".encode()

    class Handler(BaseHTTPRequestHandler):
        timeout = _TIMEOUT_S
        server_version, sys_version = "penstock", ""

        def do_GET(self) -> None:
            given = self.headers.get("Authorization", "").encode()
            if wanted is not None and not hmac.compare_digest(given, wanted):
                self._send(HTTPStatus.UNAUTHORIZED, "text/plain", b"a token is needed\n")
                return
            self._send(*answer(self.path))

        def _send(self, status: HTTPStatus, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            _log.debug(format, *args)

    return Handler
