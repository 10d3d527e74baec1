"""A server of another project as a child process: its ports, its log, and its end."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

_PATIENCE_S = 60.0  # on a machine with a lot to do a server of Java takes its time
_ROUND_S = 0.05


class ServerError(RuntimeError):
    """A server that is not installed or did not start."""


class Server:
    """A process that runs until ``stop``; what it says goes to ``log``."""

    def __init__(self, name: str, command: Sequence[str | Path], log: Path, **options: Any) -> None:
        self._name, self._log = name, log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [str(part) for part in command], stdout=output, stderr=output, **options
            )

    def wait_for(self, answers: Callable[[], bool]) -> None:
        """Returns when the server answers; if it ends before, says what it said last."""
        give_up_at = time.monotonic() + _PATIENCE_S
        while not answers():
            ended = self._process.poll()
            if ended is not None:
                raise ServerError(f"{self._name} ended with {ended}: {self.last_words()}")
            if time.monotonic() > give_up_at:
                self.stop()
                raise ServerError(f"{self._name} did not answer in {_PATIENCE_S:g} s: {self.last_words()}")
            time.sleep(_ROUND_S)

    def last_words(self) -> str:
        return self._log.read_text(errors="replace")[-2_000:]

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


def free_ports(count: int) -> list[int]:
    """Ports of the loopback interface that nobody listens on, all different."""
    servers = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports: list[int] = [server.getsockname()[1] for server in servers]
    for server in servers:
        server.close()
    return ports


def is_open(port: int) -> bool:
    """Whether somebody listens there."""
    try:
        socket.create_connection(("127.0.0.1", port), 1.0).close()
    except OSError:
        return False
    return True
