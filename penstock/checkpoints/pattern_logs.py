"""The pattern sets of a run: what is declared meets what the checkpoint knows, and changes become part of the
next version."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from penstock.cep.patterns.match_set import MatchSet
from penstock.checkpoints.pattern_log import LoggedChange, SetLog, declarations
from penstock.checkpoints.planned import Planned
from penstock.checkpoints.positions import Progress
from penstock.memory.edges import START_OF_TIME
from penstock.memory.strings import StringPool
from penstock.operators.run.base import Build
from penstock.query.errors import QueryError
from penstock.query.patterns.sets import PatternChange, PatternSet
from penstock.query.patterns.texts import pattern_text
from penstock.query.steps import MatchSetSpec
from penstock.state.errors import StateError


@dataclass
class _Followed:
    """One set and how much of it the newest version has."""

    patterns: PatternSet
    sources: frozenset[str]  # whose watermarks are the operator's
    log: SetLog
    fetched: int  # changes of the set that the log has
    declared: Mapping[str, str]  # by pattern, as of this start
    withdrawn: frozenset[str] = frozenset()  # what an earlier start declared of these no longer counts


class PatternLogs:
    """Follows the sets of a graph from batch to batch."""

    def __init__(self) -> None:
        self._sets: dict[str, _Followed] = {}
        self.told: list[str] = []  # what has changed since the checkpoint, in words

    @classmethod
    def begin(cls, plan: Planned, progress: Progress, fresh: Collection[str]) -> tuple[PatternLogs, Progress]:
        """The sets of a run that starts from ``progress``, and the progress with what they declare.

        ``fresh`` are the steps that start without state: of a set, its patterns are those that are declared.
        Of the others the version has all that its batch must see: what is declared otherwise now changes
        behind that batch.
        """
        logs, kept = cls(), {}
        for node in plan.graph.nodes:
            if not isinstance(node.spec, MatchSetSpec):
                continue
            build = Build(node, plan.layouts.inputs(node), plan.layouts.outputs(node), StringPool())
            operator = MatchSet(build)
            patterns: PatternSet = node.spec.patterns
            sources = plan.graph.sources_above(node.id)
            passed_us = _passed(progress, sources)
            log = None if node.id in fresh else progress.patterns.get(node.id)
            if log is None:
                followed = _new(patterns, sources, passed_us)
            else:
                followed = logs._resumed(node.id, patterns, sources, passed_us, SetLog.of(log))
            logs._sets[node.id] = followed
            kept[node.id] = followed.log.plain()
            for change in patterns.changes:  # tasks find it compiled
                if change.spec is not None:
                    operator.prepare(change.spec)
            patterns.prepare = operator.prepare
        return logs, replace(progress, patterns=kept)

    def after(self, progress: Progress) -> Progress:
        """The progress that a batch has made, with the sets as the next batch must see them."""
        if not self._sets:
            return progress
        for followed in self._sets.values():
            passed_us = _passed(progress, followed.sources)
            changes = followed.patterns.settled_behind(followed.fetched, passed_us)
            followed.fetched += len(changes)
            log = followed.log.after(passed_us, map(LoggedChange.of, changes), followed.withdrawn)
            followed.log = replace(log, declared=followed.declared)
            followed.withdrawn = frozenset()
        return replace(
            progress, patterns={step: followed.log.plain() for step, followed in self._sets.items()}
        )

    def end(self) -> None:
        """The run is over: sets no longer compile for it."""
        for followed in self._sets.values():
            followed.patterns.prepare = None

    def _resumed(
        self, step: str, patterns: PatternSet, sources: frozenset[str], passed_us: int, log: SetLog
    ) -> _Followed:
        """A set whose patterns the checkpoint knows.

        What the app declares as it did at the last start is no news, whatever has happened to it since. Of
        a pattern that it declares otherwise, the last word counts, unless it is what the checkpoint has. One
        that it no longer declares goes.
        """
        known = self._read(step, patterns, log)
        there = log.last()
        followed = _Followed(patterns, sources, log, len(known), log.declared)

        def decide(made: list[PatternChange]) -> list[PatternChange]:
            now, last = declarations(made), {change.name: change for change in made}
            declared, news = dict(log.declared), []
            for name in [*now, *(name for name in log.declared if name not in now)]:
                if now.get(name) == log.declared.get(name):
                    continue
                change = last.get(name, PatternChange(name, None, None))
                if (None if change.spec is None else pattern_text(change.spec)) == there.get(name):
                    continue
                at_us = change.at_us if change.at_us is not None and change.at_us >= passed_us else None
                news.append(replace(change, at_us=at_us))
                declared.pop(name, None)
                if name in now:
                    declared[name] = now[name]
                self.told.append(f"pattern '{name}' of '{step}' {_told(name in there, name in now)}")
            followed.declared = declared
            followed.withdrawn = frozenset(change.name for change in news)
            return [*known, *news]

        patterns.taken_over(decide, passed_us)
        return followed

    @staticmethod
    def _read(step: str, patterns: PatternSet, log: SetLog) -> list[PatternChange]:
        """The changes that the checkpoint has; they fit, or the run does not start."""
        try:
            known = log.known()
            for change in known:
                if change.spec is not None:
                    patterns.refitted(change.name, change.spec)
        except QueryError as error:
            raise StateError(
                f"the patterns of step '{step}' cannot be taken from the checkpoint",
                f"{error.what}" + (f": {error.detail}" if error.detail else ""),
                "start the step under another name, or from an empty checkpoint",
            ) from None
        return known


def _new(patterns: PatternSet, sources: frozenset[str], passed_us: int) -> _Followed:
    """A set of which the checkpoint knows nothing: what is declared counts from the first batch on."""
    declared: dict[str, str] = {}

    def decide(made: list[PatternChange]) -> list[PatternChange]:
        declared.update(declarations(made))
        return made

    patterns.taken_over(decide, None)
    changes = patterns.settled_behind(0, passed_us)
    log = SetLog(declared=declared).after(passed_us, map(LoggedChange.of, changes))
    return _Followed(patterns, sources, log, len(changes), declared)


def _passed(progress: Progress, sources: frozenset[str]) -> int:
    """Events before it have been matched, in all tasks."""
    return min((progress.seen_us.get(source, START_OF_TIME) for source in sources), default=START_OF_TIME)


def _told(was_there: bool, is_declared: bool) -> str:
    if not is_declared:
        return "is no longer declared: it is removed"
    return "is declared otherwise now: it is replaced" if was_there else "is new"
