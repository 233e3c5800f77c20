"""The declaration of settings: form, default, meaning. The settings are in plan/settings."""
