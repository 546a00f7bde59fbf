"""What the program's exit statuses mean; 0 is success, and 1 with a traceback is a bug."""

WRONG_INPUT = 2
NOT_CONVERGED = 3
NOT_REPRODUCED = 4
INTERRUPTED = 130
