"""Live views: one reader for all who look at the same thing, and the events that they get."""
