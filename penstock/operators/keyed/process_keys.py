"""The keys of a process function: those that have something to remember, by their last events."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator

from penstock.operators.keyed.timers import Key

Values = tuple[object, ...]


class ProcessKeys:
    """Makes keys when they are first met, and forgets them when that cannot be told any more.

    Two kinds are forgotten. A key in its first state and without timers is as one that was never met, once
    time has moved on from it. With a ttl, a key that had no event for so long counts as such: if one more
    event comes, ``of_event`` empties it, whether or not it was still here.
    """

    __slots__ = ("_emptied", "_keys", "_new", "_ttl_us")

    def __init__(self, new: Callable[[Values], Key], ttl_us: int | None) -> None:
        self._new = new
        self._ttl_us = ttl_us
        # With a ttl in the order of their last events, which come in the order of time.
        self._keys: OrderedDict[Values, Key] = OrderedDict()
        self._emptied: dict[Values, Key] = {}  # those that had nothing to remember after their last call

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._keys.values())

    def __contains__(self, values: Values) -> bool:
        return values in self._keys

    def __getitem__(self, values: Values) -> Key:
        return self._keys[values]

    def of_event(self, values: Values, time_us: int) -> Key:
        """The key of an event at that time."""
        key = self._keys.get(values)
        if key is None:
            key = self.add(values)
        elif self.is_over(key, time_us):
            key.context.clear()
        return key

    def note_event(self, key: Key, time_us: int) -> None:
        """The key's event at that time counts: it was not set aside."""
        key.seen = time_us
        if self._ttl_us is not None:
            self._keys.move_to_end(key.context.key)

    def add(self, values: Values) -> Key:
        """A new key with these values."""
        key = self._keys[values] = self._new(values)
        return key

    def is_over(self, key: Key, time_us: int) -> bool:
        """Whether at that time the key's last event is the ttl ago."""
        return self._ttl_us is not None and time_us - key.seen >= self._ttl_us

    def note_empty(self, key: Key) -> None:
        """The key has its first state and no timers."""
        self._emptied[key.context.key] = key

    def forget(self, watermark_us: int, is_first_state: Callable[[Key], bool]) -> None:
        """Takes out what can be; all events and timers before ``watermark_us`` have been handled."""
        emptied, self._emptied = self._emptied, {}
        for values, key in emptied.items():
            if key.context.timers or not is_first_state(key) or self._keys.get(values) is not key:
                continue
            if key.context.time < watermark_us:
                del self._keys[values]
            else:  # rows of one time are numbered: what counts them stays while that time can come again
                self._emptied[values] = key
        if self._ttl_us is not None:
            while self._keys and self.is_over(key := next(iter(self._keys.values())), watermark_us):
                key.context.timers.clear()
                del self._keys[key.context.key]

    def restored(self) -> None:
        """Keys were added that were met elsewhere: brings all into the order of their last events."""
        if self._ttl_us is not None:
            self._keys = OrderedDict(sorted(self._keys.items(), key=lambda item: item[1].seen))

    def clear(self) -> None:
        """Forgets all."""
        self._keys.clear()
        self._emptied.clear()
