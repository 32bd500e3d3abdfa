"""Lists of classes and maps from the labels of data sets to them."""
