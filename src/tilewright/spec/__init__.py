"""What to compute: pure records that know nothing of machines or loops."""
