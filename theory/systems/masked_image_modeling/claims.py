"""Stand-in."""
CLAIMS = ()
