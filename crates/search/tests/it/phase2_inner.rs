//! Phase 2, inner loop: Algorithm 2, lines 9-25.
