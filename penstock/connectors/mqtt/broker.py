"""A connection to an MQTT broker without a thread of its own: whoever has it moves it."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode
from paho.mqtt.reasoncodes import ReasonCode

from penstock.query.errors import QueryError, RunError

_ROUND_S = 0.5  # how long to wait for the broker before looking at the clock again
_MOMENT_S = 0.0002  # longer than a broker on this machine takes to answer
_MOST_READS = 1_000  # per look at the socket: a fast broker must not hold the thread


@dataclass(frozen=True)
class MqttBroker:
    """Where a broker listens and how to present oneself. No encryption, no password."""

    host: str = "127.0.0.1"
    port: int = 1883
    client_id: str = ""
    patience_s: float = 10.0

    def __post_init__(self) -> None:
        if not 1 <= self.port <= 65_535:
            raise QueryError("port must be between 1 and 65535", detail=f"got {self.port}")
        if self.patience_s <= 0:
            raise QueryError("connect_seconds must be positive", detail=f"got {self.patience_s}")

    def __str__(self) -> str:
        return f"the MQTT broker at {self.host}:{self.port}"

    def connect(self, on_message: Callable[[MQTTMessage], None] | None = None) -> Connection:
        """Connects, and waits until the broker has agreed."""
        return Connection(self, on_message)


class Connection:
    """Used by one thread at a time. What the broker says is only heard in ``poll``, ``drain`` and the calls
    that wait."""

    def __init__(self, broker: MqttBroker, on_message: Callable[[MQTTMessage], None] | None = None) -> None:
        self._broker = broker
        self._agreed: list[ReasonCode] = []  # what the broker said about connecting
        self._subscribed: list[ReasonCode] = []
        self.unacknowledged = 0  # messages sent and not yet with the broker
        client = self._client = Client(CallbackAPIVersion.VERSION2, client_id=broker.client_id)
        client.on_connect = self._on_connect
        client.on_subscribe = self._on_subscribe
        client.on_publish = self._on_publish
        client.max_inflight_messages_set(0)  # whoever sends waits for ``unacknowledged`` itself
        if on_message is not None:
            client.on_message = lambda client, data, message: on_message(message)
        try:
            # Without keep-alive packets: nobody would answer them while an operator waits for its turn. The
            # socket's own probes find out if the broker is gone.
            client.connect(broker.host, broker.port, keepalive=0)
        except (OSError, ValueError) as error:
            hint = f"start one, e.g. mosquitto -p {broker.port}, or give host= and port="
            raise RunError(f"cannot reach {broker}: {error}; {hint}") from None
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._wait(lambda: bool(self._agreed), "did not answer")
        for code in self._agreed:
            if code.is_failure:
                raise RunError(f"{broker} refused the connection: {code}")

    def subscribe(self, topic: str, qos: int) -> None:
        """Asks for a topic, and waits until the broker has agreed."""
        self._check(self._client.subscribe(topic, qos)[0])
        self._wait(lambda: bool(self._subscribed), f"did not answer about topic '{topic}'")
        for code in self._subscribed:
            if code.is_failure:
                raise RunError(f"{self._broker} refused topic '{topic}': {code}")

    def publish(self, topic: str, payload: bytes | str, qos: int, retain: bool) -> None:
        """Sends a message, or as much of it as the socket takes; ``drain`` sends the rest."""
        self.unacknowledged += 1
        self._check(self._client.publish(topic, payload, qos, retain).rc)

    def poll(self) -> None:
        """Hears what the broker has said so far. While it says something, waits a moment for more: it sends
        only so many messages before they are acknowledged, and drops what piles up behind them."""
        wait_s = 0.0
        for _ in range(_MOST_READS):
            readable, _, _ = select.select([self._socket], [], [], wait_s)
            if not readable:
                break
            self._check(self._client.loop_read())
            wait_s = _MOMENT_S

    def drain(self, most_unacknowledged: int) -> None:
        """Waits until everything is sent and all but so many messages are with the broker."""
        self._wait(
            lambda: not self._client.want_write() and self.unacknowledged <= most_unacknowledged,
            "takes no messages",
        )

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        """Says goodbye, if anyone is there to hear it."""
        self._client.disconnect()

    @property
    def _socket(self) -> socket.socket:
        found: Any = self._client.socket()
        if found is None:
            raise self._lost()
        opened: socket.socket = found
        return opened

    def _wait(self, until: Callable[[], bool], otherwise: str) -> None:
        give_up_at = time.monotonic() + self._broker.patience_s
        while not until():
            if time.monotonic() > give_up_at:
                raise RunError(f"{self._broker} {otherwise} for {self._broker.patience_s:g} s")
            self._check(self._client.loop(_ROUND_S))

    def _check(self, code: MQTTErrorCode) -> None:
        if code not in (MQTTErrorCode.MQTT_ERR_SUCCESS, MQTTErrorCode.MQTT_ERR_QUEUE_SIZE):
            raise self._lost()

    def _lost(self) -> RunError:
        return RunError(f"lost the connection to {self._broker}; is it still running?")

    def _on_connect(self, client: Client, data: Any, flags: Any, code: ReasonCode, properties: Any) -> None:
        self._agreed = [code]

    def _on_subscribe(
        self, client: Client, data: Any, number: int, codes: list[ReasonCode], properties: Any
    ) -> None:
        self._subscribed = codes

    def _on_publish(self, client: Client, data: Any, number: int, code: Any, properties: Any) -> None:
        self.unacknowledged -= 1
