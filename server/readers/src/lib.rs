//! Readers: from the bytes of a recording to a profile. One module per format; formats are recognised by content.
