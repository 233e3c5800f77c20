"""Commands for what a pilot has to show: what code needs before it runs."""
