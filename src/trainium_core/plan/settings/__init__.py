"""The settings of a plan by theme. Each section is a frozen dataclass whose fields are settings."""
