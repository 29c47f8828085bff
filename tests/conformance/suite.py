"""DuckLake's suite in a checkout: its files, and what its configuration for PostgreSQL says about them."""

import dataclasses
import glob
import json
import os
import re

CONFIGURATION = "test/configs/postgres.json"
EXTENSIONS = ("test", "test_slow", "test_coverage")
SLOW = ".test_slow"

IMPOSSIBLE = {
    "test/sql/general/missing_parquet.test": "needs a DuckDB without parquet, which is built into the wheel",
}
"""Files that no catalog can pass with the DuckDB of the wheels."""


@dataclasses.dataclass
class Suite:
    """A checkout and the suite's own settings for a Postgres catalog."""

    root: str
    environment: dict
    on_init: list
    on_new_connection: list
    skip_error_messages: list
    sort_style: str
    skips: dict
    """Path of a file and why the configuration skips it."""

    def files(self, patterns, slow=True):
        """The files whose path matches one of the patterns (all without one), the slow ones first."""
        found = []
        for extension in EXTENSIONS:
            found += glob.glob(os.path.join(self.root, "test", "sql", "**", "*." + extension), recursive=True)
        paths = sorted(os.path.relpath(path, self.root) for path in found)
        paths = [path for path in paths if not patterns or any(re.search(pattern, path) for pattern in patterns)]
        return sorted((path for path in paths if slow or not path.endswith(SLOW)), key=lambda path: SLOW not in path)


def read(root):
    """The suite in a checkout; SystemExit when there is none."""
    root = os.path.abspath(root)
    path = os.path.join(root, CONFIGURATION)
    if not os.path.exists(path):
        raise SystemExit(f"{path} does not exist: --suite takes a checkout of github.com/duckdb/ducklake")
    with open(path, encoding="utf-8") as file:
        configuration = json.load(file)
    # The rest of its statements empties the one database that all files share; here each file has a lake of its own.
    on_init = [sql for sql in statements(configuration.get("on_init", "")) if sql.upper().startswith("SET ")]
    groups = configuration.get("skip_tests", [])
    return Suite(
        root=root,
        environment={each["env_name"]: each["env_value"] for each in configuration.get("test_env", [])},
        on_init=on_init,
        on_new_connection=statements(configuration.get("on_new_connection", "")),
        skip_error_messages=configuration.get("skip_error_messages", []),
        sort_style=configuration.get("sort_style"),
        skips={path: group["reason"] for group in groups for path in group["paths"]},
    )


def statements(text):
    """The statements of a setting."""
    return [sql.strip() for sql in text.split(";") if sql.strip()]


def databases(text, database):
    """The databases that a file's text opens: the given one, and those that some files add a suffix to it for."""
    suffixes = set(re.findall(r"\$\{DUCKLAKE_CONNECTION\}(_\w+)", text))
    return [database] + [database + suffix for suffix in sorted(suffixes)]
