"""What streams are asked for patterns: matches, sets of patterns, SQL, detectors of one's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from penstock.query.durations import Duration
from penstock.query.errors import QueryError, Writing
from penstock.query.function_versions import checked_version
from penstock.query.misuse import told
from penstock.query.patterns.degree import Degree
from penstock.query.patterns.patterns import Pattern
from penstock.query.step import Feed, check_timed
from penstock.query.steps import MatchSetSpec
from penstock.query.steps.spec import Version
from penstock.query.stream.base import StreamBase

if TYPE_CHECKING:
    from penstock.query.patterns.sets import PatternSet
    from penstock.query.stream.stream import Columns, Stream


@told
class PatternSteps(StreamBase):
    """Steps that look for patterns, by key if the stream has keys."""

    __slots__ = ()

    def match(
        self,
        pattern: Pattern,
        output: Columns | None = None,
        *,
        within: Duration | None = None,
        within_events: int | None = None,
        contiguity: str | None = None,
        after_match: str = "no_skip",
        consumption: str = "unrestricted",
        rows: str = "one",
        max_runs: int | None = None,
        degree: int | Degree | None = None,
        name: str | None = None,
    ) -> Stream:
        """One event per match of a pattern, by key if there are keys: keys, match_start, match_end, output.

        ``contiguity``: ``"next"`` passes over events that do not fit, ``"strict"`` none, ``"any"`` any.
        ``after_match``: ``"no_skip"``, ``"to_next"`` (one match per first event) or ``"past_last"`` (matches
        do not overlap). ``consumption="consumed"``: no event is in two matches. ``rows="all"``: one event per
        event of the match. ``max_runs`` bounds the open runs of a key.

        ``degree``: without a key, and unless matches depend on each other, so many instances share the events
        that could begin a match, in as many tasks as there are. It changes no result, but ``max_runs`` then
        bounds the runs of each first event. See :class:`penstock.Degree` for one that changes.

        >>> slow, fast = event("slow", col("speed") < 10), event("fast", col("speed") > 40)
        >>> jumps = cars.key_by("id").match(slow >> fast, {"lane": fast["lane"]}, within="10s")
        >>> jumps.schema
        Schema(id: int64, match_start: timestamp, match_end: timestamp, lane: int32)
        """
        from penstock.query.patterns.matching import matched
        from penstock.query.stream.stream import Stream

        with Writing("match", name) as writing:
            check_timed(self._feed)
            spec, schema = matched(
                self.schema,
                self._match_keys,
                pattern,
                output,
                within,
                within_events,
                contiguity,
                after_match,
                consumption,
                rows,
                max_runs,
                degree,
            )
            return Stream(Feed(self._step(writing, name, spec, schema, None)))

    def match_set(self, patterns: PatternSet, *, name: str | None = None) -> Stream:
        """The matches of all patterns in a set, which may change while the app runs.

        Keys, pattern, match_start, match_end, and the columns that the set declares.
        """
        from penstock.query.patterns.sets import PatternSet
        from penstock.query.stream.stream import Stream

        with Writing("match_set", name) as writing:
            check_timed(self._feed)
            if not isinstance(patterns, PatternSet):
                raise QueryError(
                    "not a pattern set", detail=f"got {patterns!r}", hint="write PatternSet({'id': 'int64'})"
                )
            schema = patterns.bind(self.schema, self._match_keys)
            spec = MatchSetSpec(self._match_keys, patterns)
            return Stream(Feed(self._step(writing, name, spec, schema, None)))

    def match_recognize(self, text: str, *, max_runs: int | None = None, name: str | None = None) -> Stream:
        """The matches of a pattern written as SQL's ``MATCH_RECOGNIZE``; the guide says what is read.

        >>> stops = cars.match_recognize('''MATCH_RECOGNIZE (
        ...     PARTITION BY id ORDER BY ts
        ...     MEASURES FIRST(SLOWER.speed) AS speed, COUNT(SLOWER.*) AS reports
        ...     PATTERN (START_ SLOWER+ STOP) WITHIN INTERVAL '1' MINUTE
        ...     DEFINE SLOWER AS speed < PREV(speed), STOP AS speed = 0)''')
        >>> stops.schema.names
        ('id', 'match_start', 'match_end', 'speed', 'reports')
        """
        from penstock.query.patterns.sql_patterns import parse_match_recognize

        with Writing("match_recognize", name):
            said = parse_match_recognize(text, self.schema, self.time_column)
            if self._match_keys and self._match_keys != said.keys:
                raise QueryError(
                    "the stream has other keys than PARTITION BY",
                    detail=f"got {', '.join(self._match_keys)} and {', '.join(said.keys) or 'none'}",
                    hint="leave key_by out",
                )
            stream = cast("Stream", self)
            keyed = stream.key_by(*said.keys) if said.keys else stream
            return keyed.match(
                said.pattern,
                said.output,
                within=said.within,
                within_events=said.within_events,
                contiguity="strict",
                after_match=said.after_match,
                rows=said.rows,
                max_runs=max_runs,
                name=name,
            )

    def detect(
        self,
        selections: Callable[[], Any],
        detector: Callable[[], Any],
        output: Mapping[str, tuple[int, str]],
        *,
        degree: int | Degree = 1,
        assignment: str = "round_robin",
        version: Version = None,
        name: str | None = None,
    ) -> Stream:
        """What a detector of your own finds in selections of the stream: stretches that it looks at whole.

        ``selections`` makes one of the families of ``ps.detection``, or predicates of your own; ``detector``
        makes a detector, one for each instance. ``output`` says which columns a match has: the number of an
        event in it, and that event's column. Besides it has ``sequence``, consecutive from 0, and
        ``closed_at``. The degree says how many instances there are and never changes a result.

        ``version`` says of which version selections and detector are: if it changes, the step and those
        behind it start without state; as long as it stays, changed code is taken for the same.

        >>> from penstock.cep.selections.splitter_windows import TupleWindows
        >>> class NoPassing:
        ...     def detect(self, columns, starts, stops): ...
        >>> cars.detect(lambda: TupleWindows(9, 3), NoPassing, {"by": (1, "id")}, degree=2).schema
        Schema(sequence: int64, closed_at: timestamp, by: int64)
        """
        from penstock.query.patterns.detecting import detected
        from penstock.query.stream.stream import Stream

        with Writing("detect", name) as writing:
            check_timed(self._feed)
            if self._match_keys:
                raise QueryError(
                    "selections are cut from the whole stream, not by key",
                    detail=f"got a stream keyed by {', '.join(self._match_keys)}",
                    hint="leave key_by out; a family of selections takes by= a column",
                )
            spec, schema = detected(
                self.schema, selections, detector, output, degree, assignment, checked_version(version)
            )
            return Stream(Feed(self._step(writing, name, spec, schema, "closed_at")))

    @property
    def _match_keys(self) -> tuple[str, ...]:
        return ()
