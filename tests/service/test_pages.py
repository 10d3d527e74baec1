"""The pages of a run: figures, health and readiness, and who may see them."""

from __future__ import annotations

import json
from http import HTTPStatus
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

import penstock as ps
from penstock.metrics.watch import Totals, Watch
from penstock.query.errors import PenstockError
from penstock.service.pages import Answers, Pages


def test_health_and_readiness_follow_the_run() -> None:
    watch = Watch("cars", "Node")
    answers = Answers(watch)

    def statuses() -> tuple[int, int]:
        return answers.of("/health")[0], answers.of("/ready")[0]

    assert statuses() == (HTTPStatus.OK, HTTPStatus.SERVICE_UNAVAILABLE)
    watch.ready()
    assert statuses() == (HTTPStatus.OK, HTTPStatus.OK)
    watch.stopping()
    assert statuses() == (HTTPStatus.OK, HTTPStatus.SERVICE_UNAVAILABLE)
    watch.failed(ValueError("no such lane"))
    assert statuses() == (HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.SERVICE_UNAVAILABLE)
    assert json.loads(answers.of("/health")[2])["error"] == "no such lane"
    assert answers.of("/etc/passwd")[0] is HTTPStatus.NOT_FOUND


def test_the_figures_are_those_of_the_moment() -> None:
    watch = Watch("cars", "Node")
    totals = Totals(read=70, written=3, late=2, waiting=5, written_by_query={"per_lane": 3})
    watch.progress(lambda: totals)
    watch.ready()
    status, kind, body = Answers(watch).of("/metrics")
    assert (status, kind.partition(";")[0]) == (HTTPStatus.OK, "text/plain")
    for line in (
        'penstock_events_read_total{run="cars"} 70.0',
        'penstock_events_late_total{run="cars"} 2.0',
        'penstock_events_waiting{run="cars"} 5.0',
        'penstock_rows_written_total{query="per_lane",run="cars"} 3.0',
        'penstock_run_state{run="cars",state="ready"} 1.0',
        'penstock_run_state{run="cars",state="failed"} 0.0',
    ):
        assert line in body.decode().splitlines()


def test_who_has_no_token_sees_nothing() -> None:
    watch = Watch("cars", "Node")
    with Pages(watch, "127.0.0.1", 0, token="open sesame") as pages:
        address = f"http://127.0.0.1:{pages.port}/health"
        for given in ({}, {"Authorization": "Bearer guess"}):
            with pytest.raises(HTTPError) as refused:
                urlopen(Request(address, headers=given))
            refused.value.close()
            assert refused.value.code == HTTPStatus.UNAUTHORIZED
        with urlopen(Request(address, headers={"Authorization": "Bearer open sesame"})) as answer:
            assert json.load(answer)["run"] == "cars"


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.7", "::", "example.com"])
def test_another_host_needs_a_token(host: str) -> None:
    with pytest.raises(PenstockError, match="pages that others can reach need a token"):
        ps.Service(port=9090, host=host)
    assert "sesame" not in repr(ps.Service(port=9090, host=host, token="sesame"))


def test_wrong_settings_are_told() -> None:
    for wrong, what in (
        ({"port": 70_000}, "port"),
        ({"log": "xml"}, "log"),
        ({"progress_every": "0s"}, "every"),
    ):
        with pytest.raises(PenstockError, match=what):
            ps.Service(**wrong)


def test_a_port_that_is_taken_is_told() -> None:
    watch = Watch("cars", "Node")
    with Pages(watch, "127.0.0.1", 0) as pages, pytest.raises(PenstockError, match="cannot be opened"):
        Pages(watch, "127.0.0.1", pages.port)
