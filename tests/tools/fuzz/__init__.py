"""Hostile input: targets for bytes that nobody meant, and a coverage-guided fuzzer for them."""
