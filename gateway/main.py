"""The only wiring: a Site becomes every collaborator, handed over by keyword, run in one TaskGroup."""
