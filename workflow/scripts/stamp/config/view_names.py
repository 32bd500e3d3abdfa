"""The views that every study has names for; a target's view has the target's own name."""

SOURCE = "source"  # the images of all pairs, and the calibration images
ID = "id"  # further labeled images of the source
TRAIN = "train"
VAL = "val"
RESERVED = (SOURCE, ID, TRAIN, VAL)
