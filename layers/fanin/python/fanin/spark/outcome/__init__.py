"""What became of the items of a dataset: done, failed and why, held, or pending."""
