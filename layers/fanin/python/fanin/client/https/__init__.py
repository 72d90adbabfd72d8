"""The services over HTTPS: transport, signing, and the calls of the API."""
