"""Side-by-side measurements of speed, memory and tests: ``python -m benchmarks``, or some by name.

Nothing here asserts on a clock. The two sides of a ratio are measured in one run, in turn, with the
same number of threads. Run from the project's root with ``workflow/scripts`` on the Python path.
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
