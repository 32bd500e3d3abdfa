"""Jobs find the library of the checkout that started them."""

import os
from pathlib import Path

from stamp.core.environment import prepare


def test_own_library_comes_first_and_the_rest_of_the_path_stays():
    environment = {"PYTHONPATH": os.pathsep.join(["/elsewhere", "/here", ""])}
    prepare(Path("/here"), environment)
    assert environment["PYTHONPATH"].split(os.pathsep) == ["/here", "/elsewhere"]


def test_second_workflow_of_a_job_changes_nothing_more():
    environment = {}
    prepare(Path("/here"), environment)
    once = dict(environment)
    prepare(Path("/here"), environment)
    assert environment == once and environment["PYTHONPATH"] == "/here"


def test_thresholds_that_a_user_set_stay():
    environment = {"MALLOC_TRIM_THRESHOLD_": "1"}
    prepare(Path("/here"), environment)
    assert environment["MALLOC_TRIM_THRESHOLD_"] == "1"
    assert int(environment["MALLOC_MMAP_THRESHOLD_"]) == 2**30
