"""The fast and the slow way through lines must agree: a result may not depend on where chunks are cut."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.connectors.formats.csv import CsvParser
from penstock.connectors.formats.json_lines import JsonParser
from penstock.connectors.formats.lines import LINE_BYTES, LineBuffer, LineParser
from penstock.connectors.memory.sink import plain_rows
from penstock.memory.arrow import batch_from_columns
from penstock.memory.layout import Layout
from penstock.memory.strings import StringPool
from penstock.query.types import Schema

SCHEMA = Schema(t="timestamp", i="int32", f="float32?", d="float64", s="string?", r="string", b="bool?")
Outcome = tuple[list[Any], list[tuple[int, int, str, str]]]


def csv_parser(schema: Schema = SCHEMA, strings: StringPool | None = None, delimiter: str = ",") -> CsvParser:
    return CsvParser(
        schema.names, schema, Layout(schema), StringPool() if strings is None else strings, delimiter
    )


def json_parser(schema: Schema = SCHEMA, strings: StringPool | None = None) -> JsonParser:
    return JsonParser(schema, Layout(schema), StringPool() if strings is None else strings)


def outcome(parser: LineParser, chunks: Sequence[bytes]) -> Outcome:
    """Rows, exactly (so that NaN and -0.0 tell), and bad lines with their numbers, over all chunks."""
    rows: list[Any] = []
    bad: list[tuple[int, int, str, str]] = []
    records = lines = 0
    for chunk in chunks:
        parsed = parser.parse(chunk)
        layout = Layout(parser.schema)
        batch = batch_from_columns(parsed.columns, 0, parsed.count, layout, parser._strings)
        rows += [[repr(value) for value in row.values()] for row in plain_rows(batch)]
        bad += [(records + e.record, lines + e.line, e.text, e.reason) for e in parsed.bad]
        records += parsed.records
        lines += parsed.lines
    assert records == len(rows) + len(bad)
    return rows, bad


def slowly(parser: LineParser, chunks: Sequence[bytes]) -> Outcome:
    parser.fast = lambda chunk, lines: None  # type: ignore[method-assign]
    return outcome(parser, chunks)


TIMES = ["2024-05-06", "2024-05-06T07:08:09.5", "2024-05-06 07:08:09Z", "2024-05-06T07:08:09+02:00", "0x10"]
TIMES += ["17", "-5", "99999999999999999999", "2024-13-01", "2024-05-06T07:08:09.123456789Z", "soon", " 17 "]
NUMBERS = ["0", "-0", "1", "-7", "+5", "2147483648", "1.5", "1e3", "1e999", "-1e-400", "nan", "inf", "0x1F"]
NUMBERS += [" 4", "3 ", "", "  ", "1_0", "true", "9" * 30, "9" * 400, "١"]
WORDS = ["", "a", "é", '"', '"a"', '"a""b"', '"a', 'a"b', "x y", " ", "\t", "null", "\x00"]
ODD_LINES = ["", " ", "a", ",,,,,,", ",,,,,,,", '"', "\r", "a\rb"]

csv_fields = st.tuples(
    st.sampled_from(TIMES),
    st.sampled_from(NUMBERS),
    st.sampled_from(NUMBERS),
    st.sampled_from(NUMBERS),
    st.sampled_from(WORDS),
    st.sampled_from(WORDS),
    st.sampled_from(["", "true", "False", "1", "yes", " true"]),
).map(",".join)
plain_csv = st.sampled_from(
    ["17,1,1.5,2.5,a,b,true", "2024-05-06,2,,1,,,", "2024-05-06T00:00:00Z,3,0.1,1,x,,0"]
)


def line_lists(odd: st.SearchStrategy[str], plain: st.SearchStrategy[str]) -> st.SearchStrategy[list[bytes]]:
    ended = st.tuples(odd | plain, st.sampled_from(["\n", "\r\n"])).map(
        lambda pair: (pair[0] + pair[1]).encode()
    )
    broken = st.sampled_from([b"\xff\n", b"{\xc3}\n"])
    plain_lines = plain.map(lambda line: f"{line}\n".encode())
    return st.lists(ended | broken, max_size=8) | st.lists(plain_lines, max_size=8)


@given(line_lists(st.sampled_from(ODD_LINES) | csv_fields, plain_csv))
@example([b"17,1,1.5,2.5,a,b,true\n", b'17,1,1.5,2.5,a"b,"c,true\n', b"17,1,1.5,2.5,a,b,true\n"])
@example([b"0x10,1,1,1,a,b,1\n", b"2024-05-06,1,1,1,a,b,1\n"])
def test_csv_means_the_same_fast_slow_and_line_by_line(lines: list[bytes]) -> None:
    whole = outcome(csv_parser(), [b"".join(lines)])
    assert whole == outcome(csv_parser(), lines)
    assert whole == slowly(csv_parser(), [b"".join(lines)])


quoted_csv = st.lists(
    st.sampled_from(
        ["x", "", '"a"', '"a,b"', '"a""b"', '""', '"', 'a"b', '"a"b', '"a""', '"""a"', "1", '"1"', '" 1 "']
    ),
    min_size=1,
    max_size=3,
).map(",".join)


@given(line_lists(quoted_csv, quoted_csv))
def test_quotes_mean_the_same_fast_slow_and_line_by_line(lines: list[bytes]) -> None:
    schema = Schema(a="string", b="int64?")
    whole = outcome(csv_parser(schema), [b"".join(lines)])
    assert whole == outcome(csv_parser(schema), lines)
    assert whole == slowly(csv_parser(schema), [b"".join(lines)])


JSON_VALUES = [
    "1",
    "-0",
    "2.5",
    "1e3",
    "1e999",
    "1.8e308",
    "-1e-400",
    "9" * 25,
    "9" * 400,
    "2147483648",
    "01",
]
JSON_VALUES += ["NaN", "Infinity", "-Infinity", "Inf", "true", "null", '"a"', '"17"', '"2024-05-06"', '"1.5"']
JSON_VALUES += [
    '"\\ud800"',
    '"\\udc00x"',
    '"\\ud83d\\ude00"',
    '"é\\n"',
    '"\t"',
    "[1]",
    '{"i":1}',
    "{}",
    "tru",
    "+1",
]
JSON_VALUES += [
    '"2024-05-06T07:08:09.123456789Z"',
    "9223372036854775808",
    "-9223372036854775808",
    '"\\u0000"',
    "1.",
]
JSON_LINES = [
    "",
    " ",
    "1",
    "[]",
    "{}",
    "{",
    "}",
    '{"t":1} {"t":2}',
    '{"t":1}x',
    " {} ",
    "null",
    '{"t":1,}',
    '{"i":1',
]
JSON_LINES += ['{"i":{"i":1}', ',"d":1}', "[" * 2000, '{"z":' + "[" * 1500 + "]" * 1500 + "}"]
json_objects = st.lists(
    st.tuples(st.sampled_from([*SCHEMA.names, "z"]), st.sampled_from(JSON_VALUES)), max_size=8
).map(lambda pairs: "{" + ",".join(f'"{name}":{value}' for name, value in pairs) + "}")
good_json = st.fixed_dictionaries(
    {
        "t": st.integers(-(2**62), 2**62),
        "i": st.integers(-9, 9),
        "d": st.floats(allow_nan=False),
        "r": st.text(),
    },
    optional={
        "f": st.none() | st.floats(width=32),
        "s": st.none() | st.text(),
        "b": st.none() | st.booleans(),
    },
).map(json.dumps)
almost_good_json = st.tuples(
    st.sampled_from(SCHEMA.names), st.sampled_from(JSON_VALUES), st.sampled_from(['"2024-05-06"', "5"])
).map(lambda c: json_with(*c))


def json_with(name: str, value: str, time: str) -> str:
    values = {"t": time, "i": "1", "f": "0.1", "d": "2", "s": "null", "r": '"r"', "b": "true"} | {name: value}
    return "{" + ",".join(f'"{key}":{text}' for key, text in values.items()) + "}"


@given(line_lists(st.sampled_from(JSON_LINES) | json_objects | almost_good_json, good_json))
@example([b'{"i":{"i":1}\n', b',"d":1}\n', b'{"t":1} {"t":2}\n'])
def test_json_means_the_same_fast_slow_and_line_by_line(lines: list[bytes]) -> None:
    whole = outcome(json_parser(), [b"".join(lines)])
    assert whole == outcome(json_parser(), lines)
    assert whole == slowly(json_parser(), [b"".join(lines)])


blanks = st.sampled_from(["", " ", "\t"])
spaced_json = st.tuples(almost_good_json, blanks, blanks, blanks).map(
    lambda c: c[1] + c[0].replace(":", f"{c[2]}:{c[3]}").replace(",", f"{c[3]},{c[1]}") + c[2]
)
few_odd = st.tuples(
    st.integers(10, 30), st.lists(st.tuples(st.integers(0, 9), almost_good_json | spaced_json), max_size=2)
)


@given(few_odd)
def test_json_lines_that_are_alike_mean_the_same_beside_others(
    lines: tuple[int, list[tuple[int, str]]],
) -> None:
    count, odd = lines
    texts = [json_with("i", str(number), "5") for number in range(count)]
    for place, text in odd:
        texts[place] = text
    chunk = "".join(f"{text}\n" for text in texts).encode()
    assert outcome(json_parser(), [chunk]) == slowly(json_parser(), [chunk])


@given(st.lists(almost_good_json, min_size=1, max_size=3))
def test_json_that_the_fast_way_takes_the_slow_way_takes_too(lines: list[str]) -> None:
    chunk = "".join(f"{line}\n" for line in lines).encode()
    assert outcome(json_parser(), [chunk]) == slowly(json_parser(), [chunk])


def test_the_fast_way_is_taken_for_regular_lines() -> None:
    line = b"2024-05-06T07:08:09.25Z,1,0.1,2,,,true\n"
    assert csv_parser().fast(line * 3, 3) is not None
    assert json_parser().fast(json_with("i", "5", "7").encode() + b"\n", 1) is not None


def test_csv_values_by_hand() -> None:
    rows, bad = outcome(csv_parser(), [b"1970-01-01T00:00:01Z, 5 ,,nan,,,TRUE\r\n\r\n17,1,0.5,1,a,b,\n"])
    assert rows == [
        ["1000000", "5", "None", "nan", "None", "''", "True"],
        ["17", "1", "0.5", "1.0", "'a'", "'b'", "None"],
    ]
    assert bad == []


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"17,1,1", "the line has 3 fields, not 7"),
        (b"17,x,1,1,a,b,1", "column 'i': 'x' is not an int32"),
        (b"17,2147483648,1,1,a,b,1", "column 'i': '2147483648' is not an int32"),
        (b"soon,1,1,1,a,b,1", "column 't': 'soon' is not a timestamp"),
        (b"17,,1,1,a,b,1", "column 'i': null, but the schema has int32 and not int32?"),
        (b'17,1,1,1,"a,b,1', "the line is no CSV: unexpected end of data"),
        (b"\xff", "the line is not UTF-8: byte 0 is 0xff"),
        (b"x" * (LINE_BYTES + 1), "the line is longer than 1,048,576 bytes"),
    ],
)
def test_a_bad_csv_line_is_kept_with_its_reason_and_the_others_go_on(line: bytes, reason: str) -> None:
    good = b"17,1,1,1,a,b,1\n"
    rows, bad = outcome(csv_parser(), [good + b"\n" + line + b"\n" + good])
    assert len(rows) == 2
    assert [(record, number, why) for record, number, _, why in bad] == [(1, 2, reason)]
    assert line.decode(errors="replace").startswith(bad[0][2])


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "the line is no JSON: Expecting property name enclosed in double quotes at character 1"),
        ("[1]", "the line is JSON, but no object"),
        (json_with("i", "1.5", "1"), "column 'i': 1.5 is not an int32"),
        (json_with("d", '"1"', "1"), "column 'd': '1' is not a float64"),
        (json_with("d", "null", "1"), "column 'd': null, but the schema has float64 and not float64?"),
        (json_with("r", '{"a":1}', "1"), "column 'r': an object is not a string"),
        (
            json_with("t", "true", "1"),
            "column 't': True is not a timestamp: ISO 8601 text or whole microseconds",
        ),
        (json_with("t", '"soon"', "1"), "column 't': 'soon' is not a timestamp"),
        ('{"i":1,"i":2}', "column 'i': given twice"),
        ("[" * 5000, "the line is nested too deeply"),
    ],
)
def test_a_bad_json_line_is_kept_with_its_reason_and_the_others_go_on(line: str, reason: str) -> None:
    good = json_with("i", "3", "4").encode() + b"\n"
    rows, bad = outcome(json_parser(), [good + line.encode() + b"\n" + good])
    assert len(rows) == 2
    assert bad == [(1, 1, line, reason)]


def test_a_bad_value_counts_even_in_a_column_that_nobody_reads() -> None:
    layout = Layout(field for field in SCHEMA if field.name == "r")
    parser = CsvParser(SCHEMA.names, SCHEMA, layout, StringPool())
    parsed = parser.parse(b"17,1,1,1,a,b,1\n17,x,1,1,a,c,1\n")
    assert parsed.count == 1
    assert len(parsed.columns) == 1
    assert parsed.bad[0].reason == "column 'i': 'x' is not an int32"


def test_strings_of_bad_lines_do_not_enter_the_dictionary() -> None:
    strings = StringPool()
    csv_parser(strings=strings).parse(b"17,1,1,1,a,b,1\n17,x,1,1,c,d,1\n")
    assert {strings.text(code) for code in range(len(strings))} == {"a", "b"}


def test_json_keeps_what_json_has_no_word_for() -> None:
    line = b'{"t":0,"i":0,"f":NaN,"d":-Infinity,"r":""}\n'
    parsed = json_parser().parse(line)
    values = dict(zip(Layout(SCHEMA).dtypes, parsed.columns, strict=True))
    assert math.isnan(parsed.columns[Layout(SCHEMA).data("f")][0])
    assert parsed.columns[Layout(SCHEMA).data("d")][0] == -math.inf
    assert values


@given(st.lists(st.binary(max_size=6).map(lambda b: b.replace(b"x", b"\n"))))
def test_a_line_buffer_loses_nothing(pieces: list[bytes]) -> None:
    buffer = LineBuffer()
    taken = b""
    for piece in pieces:
        buffer.feed(piece)
        waiting = buffer.lines
        whole = buffer.take()
        assert whole.count(b"\n") == waiting
        assert not whole or whole.endswith(b"\n")
        taken += whole
    assert taken + buffer.end() == b"".join(pieces)


def test_a_line_buffer_keeps_little_of_an_endless_line() -> None:
    buffer = LineBuffer()
    for _ in range(64):
        buffer.feed(b"y" * 100_000)
    buffer.feed(b"z\nnext\n")
    whole = buffer.take()
    assert len(whole) < LINE_BYTES + 200_000
    rows, bad = outcome(csv_parser(Schema(a="string")), [whole])
    assert rows == [["'next'"]]
    assert bad[0][3] == "the line is longer than 1,048,576 bytes"
