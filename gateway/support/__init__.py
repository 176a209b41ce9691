"""The support bundle: the facts that support staff need, without secrets."""
