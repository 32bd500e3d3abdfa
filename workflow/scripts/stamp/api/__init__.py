"""For use from Python: arrays in, frozen records out, by the functions that the workflow calls."""
