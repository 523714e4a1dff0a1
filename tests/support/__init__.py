"""What tests share: servers to run them on, clients, samples and strategies for random values."""
