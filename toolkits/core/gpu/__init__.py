"""What GPUs are and what compilers made for them, without one at hand."""
