"""How a setting is declared: form, default, meaning. The settings are in plan/sections and engines/*/settings.py."""
