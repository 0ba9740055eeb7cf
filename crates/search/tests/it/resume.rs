//! A run that dies is taken up where it stopped.
