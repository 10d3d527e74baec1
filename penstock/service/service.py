"""A service as users name it: ``app.run(service=ps.Service(port=9090, log="json"))``."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from penstock.metrics.watch import Watch
from penstock.query.durations import Duration, positive_us
from penstock.query.errors import PenstockError
from penstock.query.misuse import told
from penstock.service.logs import LogFormat, logging_as
from penstock.service.pages import Pages

_LOOPBACK = "127.0.0.1"


@told
@dataclass(frozen=True)
class Service:
    """What a run tells while it goes on.

    With a ``port`` it serves ``/metrics`` for Prometheus, ``/health`` and ``/ready`` on ``host``, which is
    loopback unless told otherwise; 0 takes a free port, which the log names. Another host needs a ``token``,
    which every request must then carry: ``Authorization: Bearer TOKEN``. ``log`` is ``"text"`` or ``"json"``,
    written to standard error; None leaves logging to the app. Progress is told every ``progress_every``.
    """

    port: int | None = None
    host: str = _LOOPBACK
    token: str | None = field(default=None, repr=False)
    log: str | None = None
    progress_every: Duration = "10s"

    def __post_init__(self) -> None:
        if self.port is not None and not 0 <= self.port < 1 << 16:
            raise PenstockError(f"port must be between 0 and 65535: got {self.port!r}")
        if self.log is not None and self.log not in list(LogFormat):
            raise PenstockError(f"log must be 'text' or 'json': got {self.log!r}")
        if self.port is not None and not _is_loopback(self.host) and not self.token:
            raise PenstockError(
                f"pages that others can reach need a token: host is '{self.host}'; "
                "set PENSTOCK_SERVICE_TOKEN, or leave host out for loopback"
            )
        _ = self.progress_every_s

    @property
    def progress_every_s(self) -> float:
        """How often progress is told."""
        every_us = positive_us(self.progress_every, "progress_every")
        assert every_us is not None
        return every_us / 1e6

    @contextmanager
    def open(self, watch: Watch) -> Iterator[None]:
        """Inside ``with``, the run that is watched is told of."""
        with ExitStack() as stack:
            if self.log is not None:
                stack.enter_context(logging_as(LogFormat(self.log)))
            if self.port is not None:
                stack.enter_context(Pages(watch, self.host, self.port, self.token))
            yield


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
