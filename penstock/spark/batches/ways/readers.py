"""How many tasks read the next batch: asked by the process that plans it, so it loads little."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.spark.batches.ways.way import Terms, Way, choose
from penstock.state.files import Folder
from penstock.state.manifest import Manifest


@dataclass(frozen=True)
class Readers:
    """``store`` is the folder of the state, whose newest version says how many tasks there are."""

    store: str
    terms: Terms

    def __call__(self) -> int | None:
        """One, if the batch runs in one piece; else None: as many as there are."""
        manifests = Folder(self.store).inside("manifests")
        versions = [int(name[:-5]) for name in manifests.names() if name[:-5].isdecimal()]
        if not versions:
            return None
        name = f"{max(versions)}.json"
        manifest = Manifest.from_bytes(manifests.read(name).to_pybytes(), name)
        return 1 if choose(self.terms, max(manifest.progress["routing"]) + 1) is Way.WHOLE else None
