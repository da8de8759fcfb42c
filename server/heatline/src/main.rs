//! Costs of native sample profiles on the lines of your source: the command line and the language server.
#![allow(clippy::disallowed_methods, reason = "this crate opens the files that the others ask for")]

mod base_text;
mod binaries;
mod call_lines;
mod cli;
mod discovery;
mod files;
mod freeze;
mod kernel_symbols;
mod load;
mod lsp;
mod out_file;
mod resolving;
mod rust_source;
mod settings;
mod shared_calls;
mod sources;
mod storage;
mod symbol_path;
mod time_choice;
mod watch;
mod which_profile;

fn main() -> std::process::ExitCode {
    cli::run()
}
