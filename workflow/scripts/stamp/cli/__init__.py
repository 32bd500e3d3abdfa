"""The commands of ``python -m stamp``: one module each, or one folder for a larger one.

A command has ``HELP``, one line; ``EXAMPLE``, a command that works; ``arguments(parser)``, which
adds its arguments; and ``run(arguments)``, which does the work and returns the exit code or None.
The module's name with hyphens is the command's. Heavy imports belong inside ``run``: listing the
commands stays quick.
"""

COMMANDS = (
    "add_model",
    "audit_model",
    "check_data",
    "completion",
    "cost",
    "doctor",
    "example_data",
    "logs",
    "metrics",
    "new_study",
    "open",
    "pin",
    "statistics",
    "status",
    "trust",
)
