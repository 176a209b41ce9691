"""The edge gateway of one parking or gate site. `ARCHITECTURE.md` describes it; `gateway.app` wires it."""
