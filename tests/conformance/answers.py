"""Whether the rows of a query are those that a sqllogictest file expects. Pure."""

import csv
import hashlib
import re

from duckdb_api import BOOLEAN, FLOATING, NUMERIC

ROWS_SHOWN_MAX = 20
RELATIVE_TOLERANCE = 0.01
ABSOLUTE_TOLERANCE = 1e-8
"""How far a floating-point number may be from the expected one, as in DuckDB's own runner."""

SORTS = ("nosort", "rowsort", "valuesort", "sort")


class Mismatch(Exception):
    """What was expected and what came."""


def shown(value, type_number):
    """A value as sqllogictest writes it."""
    if value is None:
        return "NULL"
    if type_number == BOOLEAN:
        return "1" if value == "true" else "0"
    return "(empty)" if value == "" else value.replace("\0", "\\0")


def matches_pattern(text, expected):
    """Whether `expected` is a pattern (`<REGEX>:`, `<!REGEX>:`) that the text fulfils."""
    for mark, wanted in (("<REGEX>:", True), ("<!REGEX>:", False)):
        if expected.startswith(mark):
            return (re.fullmatch(expected[len(mark) :], text, re.DOTALL) is not None) == wanted
    return False


def same(got, expected, type_number):
    """Whether a value is the expected one."""
    if got == expected:
        return True
    if expected.startswith(("<REGEX>:", "<!REGEX>:")):
        return matches_pattern(got, expected)
    if type_number == BOOLEAN:
        return {"true": "1", "false": "0"}.get(expected.lower(), expected) == got
    if type_number not in NUMERIC or "NULL" in (got, expected):
        return False
    try:
        left, right = float(got), float(expected)
    except ValueError:
        return False
    if left == right or (left != left and right != right):
        return True
    tolerance = abs(right) * RELATIVE_TOLERANCE + ABSOLUTE_TOLERANCE
    return type_number in FLOATING and abs(left - right) <= tolerance


def digest(rows):
    """What rows under a common label are compared by."""
    return hashlib.md5("\n".join("\t".join(row) for row in rows).encode()).hexdigest()


def check(rows, types, expected, sort):
    """Compares the rows with the lines after `----`; a Mismatch says where they differ."""
    pattern = re.fullmatch(r"(\d+) values hashing to ([0-9a-f]{32})", expected[0]) if len(expected) == 1 else None
    if pattern:
        check_hash(rows, int(pattern[1]), pattern[2], sort)
        return
    wanted = expected_rows(expected, len(types), rows)
    if sort in ("rowsort", "sort"):
        rows, wanted = sorted(rows), sorted(wanted)
    elif sort == "valuesort":
        rows, wanted = [sorted([value] for row in side for value in row) for side in (rows, wanted)]
        types = [0]
    for number, (row, wanted_row) in enumerate(zip(rows, wanted), 1):
        for column, type_number in enumerate(types):
            if not same(row[column], wanted_row[column], type_number):
                what = f"row {number}, column {column + 1}: expected {wanted_row[column]!r}, got {row[column]!r}"
                raise Mismatch(what + both(wanted, rows))


def expected_rows(expected, column_count, rows):
    """The expected lines as rows: a row a line, its values apart by tabs, or a value a line."""
    by_tabs = column_count > 1 and all(line.count("\t") == column_count - 1 for line in expected)
    if by_tabs and len(expected) == len(rows):
        return [line.split("\t") for line in expected]
    by_values = [expected[at : at + column_count] for at in range(0, len(expected), column_count)]
    if len(expected) == column_count * len(rows):
        return by_values
    wanted = [line.split("\t") for line in expected] if "\t" in "".join(expected) else by_values
    raise Mismatch(f"{len(wanted)} rows expected, got {len(rows)}" + both(wanted, rows))


def check_hash(rows, count, wanted, sort):
    """Compares by number and hash of all values."""
    values = [value for row in (sorted(rows) if sort == "rowsort" else rows) for value in row]
    if sort == "valuesort":
        values.sort()
    got = hashlib.md5("".join(value + "\n" for value in values).encode()).hexdigest()
    if (len(values), got) != (count, wanted):
        raise Mismatch(f"{count} values hashing to {wanted} expected, got {len(values)} hashing to {got}")


def check_csv(rows, types, text):
    """Compares with the text of a file of answers: a header, then values apart by `|`."""
    wanted = list(csv.reader(text.splitlines(), delimiter="|"))[1:]
    wanted = [[value or "(empty)" for value in row] for row in wanted]
    if len(wanted) != len(rows):
        raise Mismatch(f"{len(wanted)} rows expected, got {len(rows)}" + both(wanted, rows))
    for row, wanted_row in zip(rows, wanted):
        if len(row) != len(wanted_row) or not all(map(same, row, wanted_row, types)):
            raise Mismatch(f"expected {wanted_row}, got {row}")


def both(wanted, rows):
    """The beginnings of both sides."""
    return f"\nexpected: {wanted[:ROWS_SHOWN_MAX]}\ngot: {rows[:ROWS_SHOWN_MAX]}"
