"""Reports a person looks at: measured tables and plots."""
