"""Hikvision's entrance barriers over their HTTP interface (ISAPI). Their plate cameras are in `drivers.plates`."""
