"""The simulated engines behind real HTTP, paced by the wall clock."""
