//! The language server: the protocol, what is open, what is shown. Answers are looked up in costs that are finished;
//! nothing here computes one. Types of the protocol stay in this folder.

mod abilities;
mod builds;
mod configuration;
mod document;
mod followed;
mod frame;
mod job;
mod keeper;
mod message;
mod outbox;
mod placing;
mod progress;
mod requests;
mod server;
mod settling;
mod shown;
mod stamp;
mod state;
mod status;
mod text;
mod texts;
mod transport;
pub mod uri;
mod watching;

use std::process::ExitCode;

/// Threads that answer; loading and long look-ups have their own.
const WORKERS: usize = 2;

/// Threads for loading and long look-ups.
const LONG_WORKERS: usize = 8;

/// Serves one client on standard input and output until it ends the session. The exit code is 0 after an orderly
/// `shutdown`, else 1.
pub fn run() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .max_blocking_threads(LONG_WORKERS)
        .enable_time()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!(%error, "the language server cannot start");
            return ExitCode::FAILURE;
        }
    };
    let ended = runtime.block_on(async {
        let (service, socket) = server::service();
        transport::serve(service, socket, server::METHODS, std::io::stdin(), std::io::stdout()).await
    });
    // A load that is still running is not waited for.
    runtime.shutdown_background();
    match ended {
        transport::Ended::Orderly => ExitCode::SUCCESS,
        transport::Ended::Early => ExitCode::FAILURE,
    }
}
