"""The evidence of a pilot: measurements, records, comparisons, costs and reports."""
