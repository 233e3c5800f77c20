"""The settings of a plan by theme: each section is a frozen dataclass whose fields are settings."""
