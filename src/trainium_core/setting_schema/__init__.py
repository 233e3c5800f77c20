"""How a setting is declared: form, default, meaning. The settings are in plan/settings and engines/*/settings.py."""
