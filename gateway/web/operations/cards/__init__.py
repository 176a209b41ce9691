"""Access cards: reading, writing, and the Excel export."""
