"""How a vertex waits for an epoch mark on all its edges: one on which it has come is left alone until then.

Nothing that stands behind the mark is taken, so all that is taken belongs to the epoch. The edge is not
counted as work either: only the others can bring the vertex on.
"""

from __future__ import annotations

from penstock.engine.turns.vertex import Vertex
from penstock.memory.edges import Edge, Epoch


def leave_alone(vertex: Vertex, edge: Edge) -> None:
    """The mark stands at the edge's cursor, and stays there."""
    vertex.come.append(edge)
    vertex.taking = [(index, other) for index, other in vertex.taking if other is not edge]
    vertex.reading = [other for other in vertex.reading if other is not edge]


def align(vertex: Vertex) -> int:
    """Takes the watermarks of the marks that have come over; the number of the epoch."""
    number = -1
    for edge in vertex.come:
        mark = edge.next_mark()
        assert isinstance(mark, Epoch)
        assert number in (-1, mark.number), f"epochs {number} and {mark.number} meet"
        number = mark.number
        edge.watermark = max(edge.watermark, mark.watermark_us)
    return number


def go_on(vertex: Vertex) -> None:
    """The marks have been acted on: all edges are read again."""
    for edge in vertex.come:
        edge.pass_mark()
    vertex.come.clear()
    vertex.taking, vertex.reading = vertex.inputs, vertex.edges
