"""The evidence of a pilot: records, statistics, imported results, comparison."""
