"""What the buttons do: they say beforehand what will happen, in numbers, and afterwards what has happened."""
