"""One seam for serial ports and TCP: a byte stream that can be opened again."""
