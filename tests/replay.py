"""Plays complete streams to an operator as a run might: in random turns, with watermarks that are true."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.harness import Harness, Row


def replay(harness: Harness, *streams: Sequence[Row], seed: int, time: str = "t", slack: int = 0) -> None:
    """Feeds every stream in its order, in turns of random lengths; then the input is complete.

    Now and then comes a watermark, at most ``slack`` below the least time that is still to come. Late events
    do not hold it back.
    """
    choice = random.Random(seed)
    positions = [0] * len(streams)
    while any(position < len(stream) for position, stream in zip(positions, streams, strict=True)):
        index = choice.randrange(len(streams))
        stop = min(len(streams[index]), positions[index] + choice.randint(1, 7))
        harness.feed(streams[index][positions[index] : stop], index)
        positions[index] = stop
        if choice.random() < 0.5:
            coming = [
                row[time]
                for stream, position in zip(streams, positions, strict=True)
                for row in stream[position:]
                if not row.get("$late")
            ]
            if coming:
                harness.watermark(min(coming) - choice.randint(0, slack))
    harness.end()
