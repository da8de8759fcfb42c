//! What makes a binary unusable as a whole. What concerns single addresses is a [`crate::Reason`].

use heatline_profile::Cancelled;

/// Why a binary, or a look-up in it, gave nothing at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SymbolError {
    /// The content is of no known kind.
    #[error("expected an ELF or PE image or a PDB, found a file that starts with {found:02x?}")]
    UnknownFormat {
        /// The first bytes, at most eight.
        found: Vec<u8>,
    },
    /// The headers contradict themselves or the file's length.
    #[error("damaged {format} headers: {message}")]
    Headers {
        /// `ELF` or `PE`.
        format: &'static str,
        /// What the parser says.
        message: String,
    },
    /// A PDB of a kind that holds nothing we could use.
    #[error("found {what}")]
    UnsupportedPdb {
        /// Of which kind it is, and what to do.
        what: &'static str,
    },
    /// The storage gave an error.
    #[error("cannot read {what}")]
    Read {
        /// Which part.
        what: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// More addresses at once than the tables can number.
    #[error("expected at most {limit} addresses at once, found {found}")]
    TooManyAddresses {
        /// The limit.
        limit: usize,
        /// How many were given.
        found: usize,
    },
    /// The monitor asked to stop.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}
