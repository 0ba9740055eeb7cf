//! Phase 2, outer loop: Algorithm 2, lines 4-8 and 26-28.
