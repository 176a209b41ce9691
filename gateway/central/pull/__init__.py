"""Pull of cards, devices and cameras from central."""
