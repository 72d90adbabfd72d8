"""The HTTP API: one table of routes, from which both the resolver and the OpenAPI document are made."""
