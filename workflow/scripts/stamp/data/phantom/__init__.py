"""A procedurally generated longitudinal chest-phantom cohort, for demonstration and testing only.

Everything here is drawn from formulas and random numbers. Nothing was measured on a person, no
number was fitted to a patient, and no result on it is evidence about medicine.
"""

NOTICE = (
    "Procedurally generated chest phantom for demonstration and testing: "
    "no picture shows a person and no result on it is evidence about medicine."
)
