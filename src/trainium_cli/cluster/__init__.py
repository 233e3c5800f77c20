"""Commands for deployed clusters."""
