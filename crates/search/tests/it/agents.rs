//! How the 14 agents are defined (the per-agent requirements of all specifications).
