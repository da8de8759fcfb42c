//! Symbols: from the addresses of a binary to functions, files, lines and inlined frames.
