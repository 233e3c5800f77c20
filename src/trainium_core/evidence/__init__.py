"""What a pilot measured: records, statistics, imported results, comparison."""
