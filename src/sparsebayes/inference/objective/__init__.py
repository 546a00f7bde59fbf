"""What is maximised beside the evidence: scores of moves, and the priors of noise, precisions and support."""
