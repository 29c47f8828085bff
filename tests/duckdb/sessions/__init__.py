"""What DuckLake users do, one file per topic. Each module has a list SESSIONS."""

import importlib
import pkgutil

SESSIONS = [
    session
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda found: found.name)
    for session in importlib.import_module(f"sessions.{module.name}").SESSIONS
]
