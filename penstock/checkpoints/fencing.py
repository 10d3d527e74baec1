"""How the manifest of a checkpoint is created once only, wherever the checkpoint is."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from penstock.state.files import Create, cannot_fence, unfenced
from penstock.state.object_store import SCHEMES, conditional_put


def creation(root: str, allow_unfenced: bool, hadoop: Callable[[str], Create] | None = None) -> Create | None:
    """What creates manifests in a checkpoint; None where it is local and needs nothing.

    ``hadoop`` makes what creates them on ``hdfs://``, for those who have Hadoop's client. Raises where
    nothing can, unless that is allowed: a run must not begin if its commits prove nothing.
    """
    if "://" not in root:
        return None
    scheme = urlsplit(root).scheme
    if scheme == "hdfs" and hadoop is not None:
        return hadoop(root)
    if allow_unfenced:
        return unfenced
    if scheme in SCHEMES:
        return conditional_put(root)
    raise cannot_fence(root)
