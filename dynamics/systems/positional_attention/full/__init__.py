"""The population problem of positional attention with every trained entry."""
