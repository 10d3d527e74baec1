"""A Kafka broker in KRaft mode, from the jars that ``scripts/install-jars.sh`` keeps in the user's cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    NewPartitions,
    NewTopic,
)

from lab.brokers.java import jars_of, java_program
from lab.brokers.server import Server, free_ports, is_open

_CLUSTER = "cGVuc3RvY2stdGVzdHMtMQ"  # 16 bytes in base64, as Kafka wants them
#: Little memory and a quick start count for more than throughput: the first tier of the compiler is enough.
_JAVA = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-Xshare:auto", "-Xmx384m")
#: A user for SASL; the password of the user of the tests is made for each broker.
USER = "penstock"


@dataclass(frozen=True)
class Broker:
    """A broker that runs: where it listens without a password, and where with one."""

    servers: str
    sasl_servers: str
    user: str
    password: str

    def create_topic(self, name: str, partitions: int = 1, settings: Mapping[str, str] | None = None) -> str:
        """A new topic; returns its name."""
        topic = NewTopic(name, partitions, 1, config=dict(settings or {}))
        admin = self._admin()  # has to stay until it has its answer
        admin.create_topics([topic])[name].result()
        return name

    def grow_topic(self, name: str, partitions: int) -> None:
        """Gives a topic more partitions, so many in all."""
        admin = self._admin()
        admin.create_partitions([NewPartitions(name, partitions)])[name].result()

    def producer(self, settings: Mapping[str, object] | None = None) -> Producer:
        """A producer that loses nothing and doubles nothing."""
        return Producer(
            {
                "bootstrap.servers": self.servers,
                "enable.idempotence": True,
                "linger.ms": 5,
                **(settings or {}),
            }
        )

    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.servers})


@contextmanager
def kafka_broker(password: str | None = None) -> Iterator[Broker]:
    """A running broker with nothing in it; all that it wrote is gone afterwards. None: any password."""
    java, jars = java_program(), jars_of("kafka")
    folder = Path(tempfile.mkdtemp(prefix="penstock-kafka-"))
    plain, sasl, controller = free_ports(3)
    password = password or os.urandom(12).hex()
    settings = folder / "server.properties"
    settings.write_text(_settings(folder / "data", plain, sasl, controller, password))
    log = folder / "log"
    command = [str(java), *_JAVA, "-cp", f"{jars}/*"]
    try:
        subprocess.run(
            [*command, "kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(settings)],
            check=True,
            capture_output=True,
        )
        server = Server("Kafka", [*command, "kafka.Kafka", str(settings)], log)
        try:
            server.wait_for(lambda: is_open(plain) and is_open(sasl))
            yield Broker(f"127.0.0.1:{plain}", f"127.0.0.1:{sasl}", USER, password)
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _settings(data: Path, plain: int, sasl: int, controller: int, password: str) -> str:
    login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    lines = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listeners": (
            f"PLAIN://127.0.0.1:{plain},SASL://127.0.0.1:{sasl},CONTROLLER://127.0.0.1:{controller}"
        ),
        "advertised.listeners": f"PLAIN://127.0.0.1:{plain},SASL://127.0.0.1:{sasl}",
        "listener.security.protocol.map": "PLAIN:PLAINTEXT,SASL:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAIN",
        "listener.name.sasl.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl.plain.sasl.jaas.config": f'{login} user_{USER}="{password}";',
        "log.dirs": str(data),
        "auto.create.topics.enable": "false",
        # Records of tests are of 1970 at times: thirty seconds after its start a broker removes what is old.
        "log.retention.ms": "-1",
        "group.initial.rebalance.delay.ms": "0",
        # One broker has all the topics of the system, and they need not be large.
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "1",
        "share.coordinator.state.topic.replication.factor": "1",
    }
    return "".join(f"{name}={value}\n" for name, value in lines.items())
