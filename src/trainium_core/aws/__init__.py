"""What an account has: reads of its services, each with the values that it returns. Decisions are in other folders."""
