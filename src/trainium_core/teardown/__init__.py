"""Taking a cluster down: what belongs to it, in which order it goes, and what stays."""
