"""A copy of a checkpoint's newest version, while a run goes on: what it is made of never changes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from penstock.checkpoints.folders import Checkpoint
from penstock.checkpoints.groups import folder_of, store_groups, stored_groups
from penstock.checkpoints.parts import Part, parts_of
from penstock.checkpoints.verification import notes_problems
from penstock.state.errors import GO_BACK, StateError
from penstock.state.files import Folder
from penstock.state.manifest import Manifest, checksum

_TRIES = 20
_NOTES = ("sources", "spark/sources")  # what sources have written down
_HELD = "state/data/"


class _VanishedError(Exception):
    """A run has collected what was to be copied, or has divided the checkpoint."""


@dataclass(frozen=True)
class Copy:
    """What was copied."""

    folder: str
    versions: dict[int | None, int]  # by group

    def text(self) -> str:
        """As people read it."""
        versions = ", ".join(
            f"version {version}" + ("" if group is None else f" of group {group}")
            for group, version in self.versions.items()
        )
        return (
            f"{versions} copied to '{self.folder}'\n"
            f"ps.Spark(checkpoint='{self.folder}') goes on from there. What sinks have written is not in it, "
            "and is cut to what it was then: give the sinks other names if the original goes on too."
        )


def copy(root: str | Path, target: str | Path) -> Copy:
    """Copies the newest version, of each group, into an empty folder; what sinks have written stays."""
    parts_of(root)
    whole = Checkpoint.at(target)
    if Folder(whole.root).names_below():
        raise StateError(
            "the copy cannot be made", f"'{target}' is not empty", "give a folder that is not there"
        )
    for _ in range(_TRIES):
        try:
            return _copy(Checkpoint.at(root), whole)
        except (_VanishedError, FileNotFoundError):
            _remove_all_but_state(whole)
    raise StateError(
        "the copy cannot be made",
        f"the run in '{root}' removes versions faster than they can be copied",
        "let it keep more, e.g. ps.Spark(keep_versions=100), or copy while it is stopped",
    )


def _copy(source: Checkpoint, target: Checkpoint) -> Copy:
    groups, versions = stored_groups(source), {}
    for part in parts_of(source.root):
        here = target if part.group is None else Checkpoint(folder_of(target, part.group))
        versions[part.group] = _copy_part(part, here)
    if groups is not None:
        store_groups(target, groups)
    elif stored_groups(source) is not None:
        raise _VanishedError
    return Copy(target.root, versions)


def _copy_part(part: Part, target: Checkpoint) -> int:
    manifest = part.store.latest()
    if manifest is None:
        raise _VanishedError
    _copy_state(part.checkpoint, target, manifest)
    for notes in _NOTES:
        _copy_folder(f"{part.checkpoint.root}/{notes}", f"{target.root}/{notes}")
    problems = list(notes_problems(Part(target, part.group), manifest))
    if problems:
        raise StateError("the copy cannot be made", problems[0], GO_BACK)
    # It makes the copy one that can be gone on from, so it comes last.
    Folder(target.state).inside("manifests").write(f"{manifest.version}.json", manifest.to_bytes())
    return manifest.version


def _copy_state(source: Checkpoint, target: Checkpoint, manifest: Manifest) -> None:
    origin, copies = (Folder(checkpoint.state).inside("data") for checkpoint in (source, target))
    present = set(copies.names())
    for link in {link.file: link for entry in manifest.files for link in entry.links}.values():
        if link.file in present:
            continue
        data = origin.read(link.file)
        if len(data) != link.bytes or checksum(data) != link.checksum:
            raise StateError("damaged checkpoint file", f"{link.file} in '{origin.path}'", GO_BACK)
        copies.write(link.file, data)
    for name in present - manifest.file_names:
        copies.remove(name)


def _copy_folder(source: str, target: str) -> None:
    origin = Folder(source)
    for path in origin.names_below():
        folder, _, name = path.rpartition("/")
        if not name.endswith(".tmp"):
            Folder(f"{target}/{folder}".rstrip("/")).write(name, _inside(origin, folder).read(name))


def _inside(folder: Folder, name: str) -> Folder:
    return folder.inside(name) if name else folder


def _remove_all_but_state(target: Checkpoint) -> None:
    """State files are what they are, whichever version names them."""
    root = Folder(target.root)
    for path in root.names_below():
        if _HELD not in path:
            root.remove(path)
