"""Shared by tests: database servers, clients, samples and strategies for random values."""
