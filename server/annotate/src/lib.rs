//! Costs per line, function, file, module and thread, and where they stand in the text of today.
