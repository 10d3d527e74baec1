"""Settings that all tests share: hypothesis, where compiled kernels are kept, which worker runs what."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadGroupScheduling

from lab.brokers.kafka import Broker, kafka_broker
from lab.brokers.objects import ObjectStore, object_store
from lab.brokers.postgres import Database, postgres_server

# Kept between runs, so that only the first one compiles. Set before anything of Penstock is imported.
os.environ.setdefault("PENSTOCK_CACHE", str(Path(__file__).parent.parent / ".cache" / "penstock-test"))
# Of the servers that tests start. Set before Spark starts, whose processes have it from there.
PASSWORD = os.environ.setdefault("PENSTOCK_TEST_PASSWORD", os.urandom(12).hex())

_SLOW_TO_DRAW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]

# The same examples on every run: a failure here is a failure everywhere.
settings.register_profile(
    "default",
    derandomize=True,
    deadline=None,
    print_blob=True,
    max_examples=50,
    suppress_health_check=_SLOW_TO_DRAW,
)
# New examples on every run, and many more of them: HYPOTHESIS_PROFILE=thorough, or the tests marked slow.
settings.register_profile(
    "thorough",
    derandomize=False,
    deadline=None,
    print_blob=True,
    max_examples=1000,
    suppress_health_check=_SLOW_TO_DRAW,
)


def pytest_configure(config: pytest.Config) -> None:
    if "not slow" not in config.option.markexpr or "slow or" in config.option.markexpr:
        os.environ["PENSTOCK_TEST_ALL"] = "1"  # tests that share a few graphs then draw new ones
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


_SPARK = ("tests/spark/", "tests/lab/bench/test_plain.py")
#: Files in that folder that need no session here: they use no Spark, or start drivers of their own.
_WITHOUT_SESSION = tuple(
    f"tests/spark/{name}.py"
    for name in (
        "batches/test_adapting",
        "batches/test_tasks",
        "checkpoint/test_lock",
        "checkpoint/test_pattern_log",
        "groups/test_groups",
        "patterns/test_detection",
        "patterns/test_pattern_kills",
        "session/test_driver_memory",
        "session/test_interrupts",
        "session/test_python_process",
        "test_crash",
    )
)


#: With servers that are started once: all of these go to the other worker.
_WITH_SERVERS = (
    "tests/connectors/kafka/",
    "tests/connectors/postgres/",
    "tests/lab/brokers/",
    "tests/state/test_object_store.py",
)


class _OneWorkerForEach(LoadGroupScheduling):
    """All tests with a Spark session go to one worker, so that one JVM is started, and all with servers to
    one; all others one by one."""

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(_WITH_SERVERS):
            return "servers"
        needs_session = nodeid.startswith(_SPARK) and not nodeid.startswith(_WITHOUT_SESSION)
        return "spark" if needs_session else super()._split_scope(nodeid)


# Group marks would say the same, but xdist 3.8 cannot pass them on with pytest 9.
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadGroupScheduling | None:
    return _OneWorkerForEach(config, log) if config.getvalue("dist") == "loadgroup" else None


@pytest.fixture(scope="session")
def kafka() -> Iterator[Broker]:
    """A Kafka broker for all tests of this worker; each makes topics of its own."""
    with kafka_broker(PASSWORD) as broker:
        yield broker


@pytest.fixture(scope="session")
def postgres() -> Iterator[Database]:
    """A PostgreSQL server for all tests of this worker; each makes tables of its own."""
    with postgres_server(PASSWORD) as database:
        yield database


@pytest.fixture(scope="session")
def objects() -> Iterator[ObjectStore]:
    """An object store for all tests of this worker; each takes a folder of its own."""
    with object_store() as store:
        yield store
