//! Phase 3: Algorithm 3 and its failure paths.
