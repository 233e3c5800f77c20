"""User data: what a node needs to set itself up, to verify its devices and to report what it found."""
