//! From the best solution to the submission.
