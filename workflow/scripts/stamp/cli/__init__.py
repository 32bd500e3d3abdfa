"""The commands of ``python -m stamp``, one module each.

A module has ``HELP``, one line; ``arguments(parser)``, which adds its arguments; and
``run(arguments)``, which does the work and returns the exit code or None. A module's name with
hyphens is the command's. Heavy imports belong inside ``run``: listing the commands stays quick.
"""

COMMANDS = (
    "add_model",
    "audit_model",
    "check_data",
    "example_data",
    "logs",
    "metrics",
    "pin",
    "statistics",
    "status",
)
