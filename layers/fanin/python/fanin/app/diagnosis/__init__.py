"""Why a batch is not finished: what is known of it, what follows from that, and when it has stalled."""
