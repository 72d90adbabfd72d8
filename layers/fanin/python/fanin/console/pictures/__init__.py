"""Pictures, as SVG that the server makes."""
