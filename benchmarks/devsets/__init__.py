"""The development set: conversations whose later needs are known by construction. See `benchmarks.devset`."""
