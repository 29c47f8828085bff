#!/usr/bin/env python3
"""Small files of known outcome: a runner that lets everything pass would say nothing about a catalog."""

import os
import tempfile
import unittest

import answers
import pool
import sqllogic
import suite as suites

PASSES = {
    "values": "query II\nSELECT 1, NULL\n----\n1\tNULL\n",
    "a value a line": "query IT\nSELECT 1, ''\n----\n1\n(empty)\n",
    "sorted rows": "query I rowsort\nSELECT * FROM (VALUES (2), (1))\n----\n1\n2\n",
    "sorted values": "query II valuesort\nSELECT 2, 1\n----\n1\n2\n",
    "booleans": "query II\nSELECT true, false\n----\n1\tfalse\n",
    "nested values": "query I\nSELECT [{'a': 1}, NULL]\n----\n[{'a': 1}, NULL]\n",
    "close floating-point numbers": "query R\nSELECT 1.001::DOUBLE\n----\n1.0\n",
    "patterns": "query I\nSELECT 'lake 7'\n----\n<REGEX>:lake \\d\n",
    "an expected error": "statement error\nSELECT * FROM nowhere\n----\nnowhere does not exist\n",
    "loops": "loop i 0 3\n\nquery I\nSELECT ${i} + 1 > ${i}\n----\n1\n\nendloop\n",
    "conditions": "foreach x a b\n\nonlyif x=a\nquery I\nSELECT '${x}'\n----\na\n\nendloop\n",
    "threads": "concurrentloop i 0 4\n\nquery I\nSELECT ${i} = ${i}\n----\n1\n\nendloop\n",
    "labels": "query I nosort x\nSELECT 1\n----\n\nquery I nosort x\nSELECT 1\n----\n",
    "connections": "statement ok c1\nCREATE TEMP TABLE t(i INT)\n\nstatement error c2\nFROM t\n----\nt does not exist\n",
    "a database of its own": "load {TEST_DIR}/x.db\n\nstatement ok\nCREATE TABLE t(i INT)\n\nrestart\n\nstatement ok\nFROM t\n",
    "windows line ends": "query I\r\nSELECT 1\r\n----\r\n1\r\n",
}

FAILS = {
    "another value": "query I\nSELECT 1\n----\n2\n",
    "another type of nothing": "query I\nSELECT NULL\n----\n(empty)\n",
    "a row too few": "query I\nSELECT 1\n----\n1\n1\n",
    "a row too many": "query I\nSELECT * FROM range(2)\n----\n0\n",
    "the other order": "query I\nSELECT * FROM (VALUES (2), (1))\n----\n1\n2\n",
    "another number of columns": "query II\nSELECT 1\n----\n1\n",
    "an integer that is only close": "query I\nSELECT 1001\n----\n1000\n",
    "a floating-point number too far": "query R\nSELECT 1.1::DOUBLE\n----\n1.0\n",
    "a statement that fails": "statement ok\nSELECT * FROM nowhere\n",
    "an error that does not come": "statement error\nSELECT 1\n----\n",
    "another error": "statement error\nSELECT * FROM nowhere\n----\nConversion Error\n",
    "in a loop": "loop i 0 3\n\nquery I\nSELECT ${i} < 2\n----\n1\n\nendloop\n",
    "in a thread": "concurrentloop i 0 3\n\nquery I\nSELECT ${i} < 2\n----\n1\n\nendloop\n",
    "under a label": "query I nosort x\nSELECT 1\n----\n\nquery I nosort x\nSELECT 2\n----\n",
    "another hash": "query I\nSELECT 1\n----\n1 values hashing to 00000000000000000000000000000000\n",
    "a directive that is not known": "frobnicate\n",
    "a loop without an end": "loop i 0 3\n\nstatement ok\nSELECT 1\n",
    "a pattern": "query I\nSELECT 'lake'\n----\n<REGEX>:lake \\d\n",
}

SKIPS = {
    "an extension that is not there": "require no_such_extension\n\nstatement ok\nFROM nowhere\n",
    "a variable that is not there": "require-env NO_SUCH_VARIABLE_HERE\n\nstatement ok\nFROM nowhere\n",
    "all of itself": "mode skip\n\nstatement ok\nFROM nowhere\n",
    "an error of the configuration": "statement ok\nSELECT error('tell me to skip')\n",
}

ENDLESS = "query I\nSELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.range * b.range % 7 = 9\n----\n0\n"


class FilesOfKnownOutcome(unittest.TestCase):
    """Each file is played as the suite's are, in a process of its own, on a DuckDB without a catalog."""

    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.TemporaryDirectory(prefix="moraine-conformance-test-")
        root = cls.place.name
        suite = suites.Suite(root, {}, [], [], ["tell me to skip"], None, {})
        cls.pool = pool.Pool(suite, "", os.path.join(root, "runs"), 2, 60)
        pool.LOADED.clear()

    @classmethod
    def tearDownClass(cls):
        cls.place.cleanup()

    def outcomes(self, texts):
        """The outcome of each text."""
        for name, text in texts.items():
            with open(os.path.join(self.place.name, name), "w", encoding="utf-8", newline="") as file:
                file.write(text)
        found = {}
        self.pool.run(list(texts), lambda name, outcome: found.update({name: outcome}))
        return found

    def check(self, texts, status):
        """All texts come out in this way."""
        for name, outcome in self.outcomes(texts).items():
            with self.subTest(name):
                self.assertEqual(outcome["status"], status, outcome)

    def test_files_that_pass(self):
        """What DuckDB's own runner lets pass."""
        self.check(PASSES, "passed")

    def test_files_that_fail(self):
        """What it does not."""
        self.check(FAILS, "failed")

    def test_files_that_are_skipped(self):
        """What cannot be played here."""
        self.check(SKIPS, "skipped")

    def test_a_file_that_takes_too_long(self):
        """It is ended, and the line it had reached is told."""
        self.pool.timeout_seconds = 3
        outcome = self.outcomes({"endless": ENDLESS})["endless"]
        self.pool.timeout_seconds = 60
        self.assertEqual((outcome["status"], outcome["line"]), ("timed out", 1))


class Parsing(unittest.TestCase):
    """Where steps begin and end."""

    def test_lines_of_steps(self):
        """A step knows its line and its SQL."""
        steps = sqllogic.parse("# a comment\n\nstatement ok\nSELECT 1,\n2\n\nquery I\nSELECT 3\n----\n3\n\nhalt\n")
        self.assertEqual([(step.directive, step.line) for step in steps], [("statement", 3), ("query", 7), ("halt", 12)])
        self.assertEqual(steps[0].sql, "SELECT 1,\n2")
        self.assertEqual(steps[1].expected, ["3"])

    def test_numbers_that_are_not_there(self):
        """NULL is no number."""
        self.assertFalse(answers.same("NULL", "0", 4))
        self.assertTrue(answers.same("nan", "nan", 11))


if __name__ == "__main__":
    unittest.main()
