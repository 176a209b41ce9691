"""The edge gateway of one parking or gate site. `ARCHITECTURE.md` shows the house; `main.py` is the only wiring."""
