"""Central's cards, devices and cameras, pulled to the site."""
