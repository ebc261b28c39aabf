"""Pages about kernels and graphs: facts as a record, and the record as one self-contained HTML file."""
