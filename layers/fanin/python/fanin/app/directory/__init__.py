"""The directory of instances, its registrar, and content-based routing to its topics."""
