"""The same faults with a protection switched off: each must then lose something, or the laboratory is blind.

What is switched off is named here and nowhere else, and only in the app's own process: no setting of the
product does it.
"""

from __future__ import annotations

import fcntl
import os
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from penstock.connectors.files.folder_delivery import FolderDelivery
from penstock.connectors.files.text_delivery import TextDelivery
from penstock.state.store import StateStore

if TYPE_CHECKING:
    from penstock.state.manifest import Manifest

_MANIFESTS = "/state/manifests"


class Protection(StrEnum):
    """What can be switched off."""

    LOCKS = "locks"  # of the checkpoint and of outputs, as on a file system that has none
    FENCING = "fencing"  # of two runs that make the next version, one does
    VERIFIED_SINKS = "verified sinks"
    SYNCED_MANIFESTS = "synced manifests"


def switch_off(protection: Protection) -> None:
    """Lets this process do without it, from now on."""
    match protection:
        case Protection.LOCKS:
            _replace(fcntl, "flock", lambda descriptor, how: None)
        case Protection.FENCING:
            _replace(StateStore, "commit", _overwrite)
        case Protection.VERIFIED_SINKS:
            for kind in (TextDelivery, FolderDelivery):
                _replace(kind, "check", lambda delivery, batch: None)
        case Protection.SYNCED_MANIFESTS:
            _replace(os, "fsync", _sync_all_but_manifests(os.fsync))


def _overwrite(store: Any, manifest: Manifest, again: Manifest | None = None) -> None:
    store._manifests.write(f"{manifest.version}.json", manifest.to_bytes())
    store._committed = manifest


def _sync_all_but_manifests(sync: Any) -> Any:
    def sync_others(descriptor: int) -> None:
        if _MANIFESTS not in os.readlink(f"/proc/self/fd/{descriptor}"):
            sync(descriptor)

    return sync_others


def _replace(owner: Any, name: str, function: Any) -> None:
    assert hasattr(owner, name)
    setattr(owner, name, function)
