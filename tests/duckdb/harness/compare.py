"""Two recordings of the same session, side by side."""

import re

SHOWN_CHARACTERS_MAX = 400

# Names that DuckLake makes up itself, and that therefore are never the same twice.
MADE_UP = [
    (re.compile(r"ducklake-[0-9a-f-]{36}"), "ducklake-$UUID"),
    (re.compile(r"__ducklake_metadata_\w+"), "$METADATA"),
]


def neutral(text):
    """A text without the names that DuckLake made up."""
    for pattern, name in MADE_UP:
        text = pattern.sub(name, text)
    return text


def differences(expected, recorded):
    """What differs between the reference's recording and another, as lines to print; none when all is equal."""
    found = []
    for want, have in zip(expected, recorded):
        if have.differs:
            found += known_difference(want, have)
        elif want.ok != have.ok or neutral(want.text) != neutral(have.text):
            found.append(describe(want.step, want.text, have.text))
    if len(expected) != len(recorded):
        found.append(f"{len(recorded)} statements were run, not {len(expected)}")
    return found


def known_difference(want, have):
    """A difference that is known must be exactly the known one, and must still be a difference."""
    if have.text == want.text:
        return [f"{have.step}\n      no longer differs: take the note out of the session ({have.differs.why})"]
    known = have.differs
    same = have.text.split(" | ", 1)[-1] == known.text if known.ok else have.text.startswith(known.text)
    if have.ok != known.ok or not same:
        return [describe(have.step, known.text + " (known difference)", have.text)]
    return []


def describe(step, want, have):
    """One difference, short enough to read: long texts are shown from shortly before they part."""
    start = 0
    while start < min(len(want), len(have)) and want[start] == have[start]:
        start += 1
    start = max(0, start - 80)
    lead = "..." if start else ""
    want, have = (lead + text[start : start + SHOWN_CHARACTERS_MAX] for text in (want, have))
    return f"{step[:200]}\n      expected {want}\n      got      {have}"
