"""Which operators always run together, so that one kernel does the work of all and no column between them is
written.

Steps without state that have one reader are *links*; a row of them stands in *front* of the operator that
reads the last one, if that is a link itself or can take a front.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from penstock.query.graph import Graph, Port, QueryVertex
from penstock.query.steps.spec import Spec

if TYPE_CHECKING:
    from penstock.kernels.builder import KernelBuilder
    from penstock.kernels.views import Computed
    from penstock.operators.columns.front import LinkScratch
    from penstock.operators.run.base import Build

_LINKS: dict[type[Spec], Callable[[Build], Link]] = {}
_TAKERS: dict[type[Spec], Callable[[QueryVertex], bool]] = {}
_Any = TypeVar("_Any", bound="Callable[[Build], Link]")


class Link(ABC):
    """What a step does to one event, for a kernel that does more besides."""

    #: Whether it needs a pass over the events before anybody reads its columns.
    passes: bool = True
    #: Whether there may be fewer events behind it.
    chooses: bool = True
    #: How many numbers by event its pass leaves for its columns.
    scratch: int = 0

    @abstractmethod
    def choose(self, builder: KernelBuilder, scratch: LinkScratch) -> str:
        """Emits its part of the pass; says whether the event stays."""

    def computes(self, name: str) -> bool:
        """Whether a column is an expression, which may share parts with others."""
        return False

    @abstractmethod
    def computed(self, scratch: LinkScratch) -> Mapping[str, Computed]:
        """Its columns that are not those of the event before."""


def is_link(kind: type[Spec]) -> Callable[[_Any], _Any]:
    """Registers how steps of this kind are part of another one's kernel."""

    def register(link: _Any) -> _Any:
        _LINKS[kind] = link
        return link

    return register


def takes_front(kind: type[Spec], which: Callable[[QueryVertex], bool] = lambda node: True) -> None:
    """Registers that the operators of steps of this kind, those for which ``which`` is true, take a front."""
    _TAKERS[kind] = which


def link_of(build: Build) -> Link:
    """The link of a step."""
    return _LINKS[type(build.node.spec)](build)


def fronts(
    graph: Graph, apart: Callable[[QueryVertex, QueryVertex], bool] | None = None
) -> dict[str, tuple[QueryVertex, ...]]:
    """By the id of an operator: the links in front of it, in their order. ``apart`` says which reader must
    not be put together with whom it reads."""
    found: dict[str, tuple[QueryVertex, ...]] = {}
    for node in graph:
        if not _takes(graph, node):
            continue
        before = graph[node.inputs[0].node]
        if node.inputs[0].port is Port.MAIN and type(before.spec) in _LINKS:
            alone = len(graph.consumers(before.id)) == 1
            if alone and not (apart is not None and apart(before, node)):
                found[node.id] = (*found.pop(before.id, ()), before)
    return found


def places_of(found: Mapping[str, Sequence[QueryVertex]]) -> dict[str, str]:
    """Where each link runs, in a few words, for ``App.explain``."""
    return {link.id: f"in the kernel of {reader}" for reader, front in found.items() for link in front}


def _takes(graph: Graph, node: QueryVertex) -> bool:
    kind = type(node.spec)
    if kind not in _LINKS and not (kind in _TAKERS and _TAKERS[kind](node)):
        return False
    read = [port for port in Port if graph.consumers(node.id, port)]
    return read == [Port.MAIN]  # late events are the whole events of the input, so that has to be written
