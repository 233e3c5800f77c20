"""Who needs which IAM permissions, and the policies that give them."""
