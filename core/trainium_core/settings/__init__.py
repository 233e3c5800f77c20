"""What a setting is: its form, its default and its meaning, declared in one place."""
