"""What a run leaves for people: LEARNINGS.md, HISTORY.md and the final table, all rendered from the history."""
