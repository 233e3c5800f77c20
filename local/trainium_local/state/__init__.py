"""What the embedded AWS remembers, beside moto."""
