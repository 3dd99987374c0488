"""What is read off problems and runs: reduced beside full, step sizes, stability, planes."""
