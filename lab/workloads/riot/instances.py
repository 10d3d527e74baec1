"""Several instances of an operator: its stream dealt out among copies of it.

The engine runs one instance of an operator. Where a topology asks for more, they are copies in the graph,
each behind a filter for its share of the messages: the same graph, whichever system runs it.
"""

from __future__ import annotations

from penstock.query.expr import col
from penstock.query.stream.stream import Stream


def dealt(stream: Stream, instances: int, *, name: str) -> list[Stream]:
    """The stream in as many parts: every message goes to the one whose turn it is by its number."""
    if instances == 1:
        return [stream]
    return [
        stream.filter(col("message") % instances == instance, name=f"{name}.{instance}.share")
        for instance in range(instances)
    ]


def collected(streams: list[Stream], *, name: str) -> Stream:
    """The events of all instances as one stream again."""
    return streams[0] if len(streams) == 1 else streams[0].union(*streams[1:], name=name)


def instance_names(name: str, instances: int) -> list[str]:
    """What the instances are called in metrics: the operator's name alone if there is one.

    >>> instance_names("publish", 3), instance_names("join", 1)
    (['publish.0', 'publish.1', 'publish.2'], ['join'])
    """
    return [name] if instances == 1 else [f"{name}.{instance}" for instance in range(instances)]
