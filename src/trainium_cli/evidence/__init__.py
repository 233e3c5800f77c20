"""Commands for the evidence of a pilot, from the assessment of code to the report."""
