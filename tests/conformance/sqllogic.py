"""The text of a sqllogictest file, as steps. What a step does is the player's to know.

The format is SQLite's with DuckDB's additions: a step begins with its directive; `statement` and `query` go on
with their SQL up to an empty line or `----`, after which the expected rows or the expected error follow; `loop`,
`foreach` and their concurrent forms enclose steps up to `endloop`.
"""

import dataclasses

LOOPS = ("loop", "foreach", "concurrentloop", "concurrentforeach")
SEPARATOR = "----"


@dataclasses.dataclass
class Step:
    """One directive with all that belongs to it."""

    directive: str
    line: int
    arguments: list = dataclasses.field(default_factory=list)
    rest: str = ""
    """The line after the directive, as it stands."""
    conditions: list = dataclasses.field(default_factory=list)
    """(skipif or onlyif, condition) that stand before it."""
    sql: str = ""
    expected: list = dataclasses.field(default_factory=list)
    """The lines after `----`."""
    body: list = dataclasses.field(default_factory=list)
    """The steps within a loop."""


class _Lines:
    """The lines of a file, one after the other."""

    def __init__(self, text):
        self.lines = text.replace("\r\n", "\n").split("\n")
        self.number = 0

    def next(self):
        """The next line; None at the end."""
        if self.number == len(self.lines):
            return None
        self.number += 1
        return self.lines[self.number - 1]

    def take_while(self, wanted):
        """The lines from here on for which `wanted` holds; the one after them is next."""
        taken = []
        while self.number < len(self.lines) and wanted(self.lines[self.number]):
            taken.append(self.next())
        return taken


def parse(text):
    """The steps of a file; a ValueError says what does not fit together."""
    lines = _Lines(text)
    top = []
    enclosing = [top]
    conditions = []
    while (line := lines.next()) is not None:
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        directive, *arguments = line.split()
        if directive in ("skipif", "onlyif"):
            conditions.append((directive, arguments[0]))
            continue
        if directive == "endloop":
            enclosing.pop()
            if not enclosing:
                raise ValueError(f"line {lines.number}: endloop without a loop")
            continue
        rest = line[len(directive) :].strip()
        step = Step(directive, lines.number, arguments, rest, conditions)
        conditions = []
        if directive in ("statement", "query"):
            _read_sql(step, lines)
        enclosing[-1].append(step)
        if directive in LOOPS:
            enclosing.append(step.body)
    if len(enclosing) > 1:
        raise ValueError("a loop has no endloop")
    return top


def _read_sql(step, lines):
    step.sql = "\n".join(lines.take_while(lambda line: line.strip() and line.rstrip() != SEPARATOR))
    if lines.take_while(lambda line: line.rstrip() == SEPARATOR):
        step.expected = lines.take_while(bool)
