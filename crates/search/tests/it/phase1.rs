//! Phase 1: Algorithm 1 and its failure paths.
