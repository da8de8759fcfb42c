//! What a look-up yields: files, functions and chains of frames, each kept once.

pub use heatline_profile::Checksum;
use heatline_profile::Problems;
use std::collections::HashMap;
use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(NonZeroU32);

        impl $name {
            /// The number of the table's entry `index`, or `None` beyond 2³²−2.
            pub fn new(index: usize) -> Option<Self> {
                NonZeroU32::new(u32::try_from(index).ok()?.checked_add(1)?).map(Self)
            }

            /// The position in its table.
            pub fn index(self) -> usize {
                self.0.get() as usize - 1
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.index())
            }
        }
    };
}

id! {
    /// Number of a [`SourceFile`] in its [`Resolution`].
    FileId
}
id! {
    /// Number of a [`Function`] in its [`Resolution`].
    FunctionId
}

/// A source file as debug information names it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SourceFile {
    /// Compilation folder, include folder and name joined, otherwise as recorded: `..` and doubled separators stay.
    pub path: String,
    /// The hash of its content, where recorded.
    pub checksum: Option<Checksum>,
    /// Its content, where the debug information holds it.
    pub text: Option<Arc<str>>,
}

/// A function. The same function of many units, inlined or not, is one entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Function {
    /// For people: demangled, with parameters for C++, without hash for Rust.
    pub name: Arc<str>,
    /// As the linker sees it, where it differs from the source's name.
    pub linkage_name: Option<Arc<str>>,
    /// Where it is declared, or defined where the definition says its own place.
    pub file: Option<FileId>,
    /// The line of that place.
    pub line: Option<NonZeroU32>,
    /// Whether only the symbol table knows it: then no file, no line, and nothing inlined is known.
    pub from_symbol_table: bool,
}

/// One source-level activation at an address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Frame {
    /// The function, where one is known.
    pub function: Option<FunctionId>,
    /// The file of the line being executed: of the row for the innermost frame, of the call for the others.
    pub file: Option<FileId>,
    /// The line being executed. Line 0 of debug information is no line.
    pub line: Option<NonZeroU32>,
    /// The column, in bytes from 1.
    pub column: Option<NonZeroU32>,
    /// Whether this function was inlined into that of the next frame.
    pub inlined: bool,
}

/// Why an address has no source line.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Reason {
    /// The address is in no executable section, so it is no code of this binary.
    OutsideSections,
    /// The binary has no debug information; a symbol may name the function.
    NoDebugInfo,
    /// The debug information is in another file, which was not found or is of another build. Holds its name.
    MissingDebugFile(String),
    /// The debug information is in another file, which is of another build.
    OtherBuild {
        /// Its path or name, as the binary has it.
        name: String,
        /// The identity of the binary.
        expected: String,
        /// The identity of the file.
        found: String,
    },
    /// The debug information is in another file, which cannot be used.
    UnusableDebugFile {
        /// Its path or name, as the binary has it.
        name: String,
        /// Why.
        why: String,
    },
    /// There is debug information, but none for this address; a symbol may name the function.
    NotCovered,
    /// Nothing at all covers the address, not even a symbol.
    NoSymbol,
    /// The compiler gave this code no line.
    NoLine,
    /// What a recording that brings its frames along says of it.
    Recorded(String),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::OutsideSections => f.write_str("outside every section"),
            Reason::NoDebugInfo => f.write_str("no debug info"),
            Reason::MissingDebugFile(name) => write!(f, "debug info is in {name}, which was not found"),
            Reason::OtherBuild { name, expected, found } => {
                write!(f, "{name} is of another build: expected {expected}, found {found}")
            }
            Reason::UnusableDebugFile { name, why } => write!(f, "{name} cannot be used: {why}"),
            Reason::NotCovered => f.write_str("no debug info for this code"),
            Reason::NoSymbol => f.write_str("no symbol"),
            Reason::NoLine => f.write_str("no line for this code"),
            Reason::Recorded(reason) => f.write_str(reason),
        }
    }
}

/// A chain of frames shared by addresses; a range of [`Resolution::frames`]'s table, and why it has no line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Chain {
    pub start: u32,
    pub end: u32,
    /// 1 + position in the reasons, 0 for none.
    pub reason: u32,
}

/// The frames of many addresses. Holds no debug information any more, only what the addresses need of it.
#[derive(Clone, Debug, Default)]
pub struct Resolution {
    /// The source files, each path (with checksum) once.
    pub files: Vec<SourceFile>,
    /// The functions, each once.
    pub functions: Vec<Function>,
    /// What could not be read or believed.
    pub problems: Problems,
    pub(crate) frames: Vec<Frame>,
    pub(crate) chains: Vec<Chain>,
    pub(crate) reasons: Vec<Reason>,
    /// Input address → chain.
    pub(crate) of_address: Vec<u32>,
}

impl Resolution {
    /// A resolution from frames that were found elsewhere: one list per address, innermost first. Ids in the frames
    /// are positions in `files` and `functions`.
    pub fn from_frames(files: Vec<SourceFile>, functions: Vec<Function>, of_address: &[Vec<Frame>]) -> Self {
        let mut resolution = Resolution { files, functions, ..Resolution::default() };
        let mut known: HashMap<&[Frame], u32> = HashMap::new();
        for frames in of_address {
            let next = resolution.chains.len() as u32;
            let chain = *known.entry(frames).or_insert(next);
            if chain == next {
                let start = resolution.frames.len() as u32;
                resolution.frames.extend_from_slice(frames);
                resolution.chains.push(Chain { start, end: resolution.frames.len() as u32, reason: 0 });
            }
            resolution.of_address.push(chain);
        }
        resolution
    }

    /// The number of input addresses.
    pub fn len(&self) -> usize {
        self.of_address.len()
    }

    /// Whether no address was asked for.
    pub fn is_empty(&self) -> bool {
        self.of_address.is_empty()
    }

    /// The number of different chains. Many addresses share one, so what is made from frames is better made per chain.
    pub fn chain_count(&self) -> usize {
        self.chains.len()
    }

    /// The chain of input address `i`, below [`Resolution::chain_count`].
    ///
    /// # Panics
    /// If there is no such input address.
    pub fn chain(&self, i: usize) -> usize {
        self.of_address[i] as usize
    }

    /// The frames of a chain, innermost first.
    ///
    /// # Panics
    /// If there is no such chain.
    pub fn chain_frames(&self, chain: usize) -> &[Frame] {
        let chain = self.chains[chain];
        &self.frames[chain.start as usize..chain.end as usize]
    }

    /// Why a chain has no source line, `None` if it has one.
    ///
    /// # Panics
    /// If there is no such chain.
    pub fn chain_reason(&self, chain: usize) -> Option<&Reason> {
        let reason = self.chains[chain].reason as usize;
        self.reasons.get(reason.checked_sub(1)?)
    }

    /// The frames of input address `i`, innermost first; empty where nothing is known.
    ///
    /// # Panics
    /// If there is no such input address.
    pub fn frames(&self, i: usize) -> &[Frame] {
        self.chain_frames(self.chain(i))
    }

    /// Why the innermost frame of input address `i` has no source line, `None` if it has one.
    ///
    /// # Panics
    /// If there is no such input address.
    pub fn unresolved(&self, i: usize) -> Option<&Reason> {
        self.chain_reason(self.chain(i))
    }

    /// The file of that number.
    ///
    /// # Panics
    /// If it is of another resolution.
    pub fn file(&self, id: FileId) -> &SourceFile {
        &self.files[id.index()]
    }

    /// The function of that number.
    ///
    /// # Panics
    /// If it is of another resolution.
    pub fn function(&self, id: FunctionId) -> &Function {
        &self.functions[id.index()]
    }
}
