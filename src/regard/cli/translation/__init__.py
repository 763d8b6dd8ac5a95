"""What the commands do with a run whose task is translation."""
