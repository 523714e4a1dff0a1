"""What people state, in six languages: of whom, which slot and which value, by rules. Pure."""
