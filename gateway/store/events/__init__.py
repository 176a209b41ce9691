"""Events, passages, parking entries and presence, written by the journal."""
