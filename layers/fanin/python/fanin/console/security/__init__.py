"""Who is answered by a console, and what a browser may do with its pages."""
