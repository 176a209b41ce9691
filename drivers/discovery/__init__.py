"""Finding devices that nobody has configured: serial ports, cameras that speak ONVIF, and what mDNS announces."""
