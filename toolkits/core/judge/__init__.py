"""The judge: owns seeds, inputs, expected values, the clock and the verdict. Candidates run in workers, never here."""
