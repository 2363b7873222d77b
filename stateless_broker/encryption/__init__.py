"""The data keys of encrypted topics, as a broker uses them."""
