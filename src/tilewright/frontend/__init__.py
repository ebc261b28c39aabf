"""Where a problem comes from: text and shapes in, records out."""
