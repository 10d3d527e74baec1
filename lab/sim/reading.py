"""When sources are read, as in the engine: not whenever something has come, but after a wait."""

from __future__ import annotations

_SLACK = 0.25  # the share of a source's wait by which it may come too early, if another one is due
_NEVER_NS = 1 << 62


class Reading:
    """Keeps when each source is to be looked at."""

    def __init__(self, epoch_ns: int) -> None:
        self._epoch_ns = epoch_ns
        self._patience_ns = epoch_ns
        self._beat_ns = 0
        self._look_ns: dict[int, int] = {}

    @property
    def patience_ns(self) -> int:
        """How long a source that was read empty waits: an epoch, or longer where the policy wants it."""
        return self._patience_ns

    @patience_ns.setter
    def patience_ns(self, patience_ns: int) -> None:
        self._patience_ns = max(self._epoch_ns, patience_ns)

    def read_empty(self, source: int, given_ns: int, now_ns: int) -> int:
        """A source that a worker got then has nothing left now: when it is looked at next."""
        self._look_ns[source] = look_ns = self.next_read_ns(given_ns, now_ns)
        return look_ns

    def put_off(self, source: int, now_ns: int) -> int:
        """It was not worth it yet: when it is looked at again."""
        self._look_ns[source] = look_ns = now_ns + self._epoch_ns
        return look_ns

    def due(self, now_ns: int) -> list[int]:
        """The sources to be looked at by now and, if there is one, those whose time is near; once each."""
        if min(self._look_ns.values(), default=_NEVER_NS) > now_ns:
            return []
        until_ns = now_ns + int(_SLACK * self._patience_ns)
        found = sorted(source for source, look_ns in self._look_ns.items() if look_ns <= until_ns)
        for source in found:
            del self._look_ns[source]
        return found

    def next_read_ns(self, given_ns: int, now_ns: int) -> int:
        """As ``penstock.engine.quick_steps.next_read_ns``: after an epoch, or at a beat that patient sources
        have in common."""
        patience_ns = self._patience_ns
        if patience_ns <= self._epoch_ns:
            return now_ns + patience_ns
        if self._beat_ns <= now_ns:
            self._beat_ns += patience_ns
        if self._beat_ns <= now_ns or self._beat_ns > now_ns + patience_ns:
            self._beat_ns = now_ns + patience_ns
        wanted_ns = given_ns + patience_ns // 2
        if wanted_ns <= self._beat_ns - patience_ns:
            return now_ns
        return self._beat_ns if wanted_ns <= self._beat_ns else self._beat_ns + patience_ns
