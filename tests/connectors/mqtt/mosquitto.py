"""A real Mosquitto broker on a free port of this machine, for tests of MQTT."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_PATHS = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"  # packages put it where daemons live
MOSQUITTO = shutil.which("mosquitto", path=_PATHS)

needs_mosquitto = pytest.mark.skipif(
    MOSQUITTO is None, reason="mosquitto is not installed: apt-get install mosquitto"
)


@contextmanager
def broker(folder: Path) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    """A running broker: its port and its process."""
    assert MOSQUITTO is not None
    port = free_port()
    settings = folder / "mosquitto.conf"
    # A subscriber that the tests keep waiting must lose nothing.
    lines = [
        f"listener {port} 127.0.0.1",
        "allow_anonymous true",
        "persistence false",
        "max_queued_messages 0",
    ]
    settings.write_text("\n".join(lines) + "\n")
    process = subprocess.Popen([MOSQUITTO, "-c", str(settings)], stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if "running" in line:
                break
        else:
            raise AssertionError(f"mosquitto did not start: it ended with {process.wait()}")
        yield port, process
    finally:
        process.kill()
        process.communicate()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port
