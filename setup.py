"""The package, and in it the workflow's other files as ``stamp/project``, see core/shipped."""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages("workflow/scripts", include=["stamp*"]), "stamp.project"],
    package_dir={"": "workflow/scripts", "stamp.project": "."},
    package_data={
        "": ["*.rst", "templates/*"],
        "stamp.project": [
            "Snakefile",
            "rules/*.smk",
            "config/README.md",
            "envs/stamp.yaml",
            "profiles/*/*.yaml",
            "resources/*.csv",
            "resources/*.md",
            "resources/*/*.csv",
            "workflow/report/*.rst",
            "workflow/schemas/*.json",
            "workflow/scripts/*.py",
        ],
    },
)
