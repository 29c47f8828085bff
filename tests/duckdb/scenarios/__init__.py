"""What can only be shown on a server: crashes, races, many writers. Each module has a list SCENARIOS.

A scenario is a function of a fresh directory and the path of the `moraine` binary. It asserts what must hold
and may return a short note for the report.
"""

import importlib
import pkgutil

SCENARIOS = [
    scenario
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda found: found.name)
    for scenario in importlib.import_module(f"scenarios.{module.name}").SCENARIOS
]
