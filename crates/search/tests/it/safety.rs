//! Debugger, leakage and data-usage agents.
