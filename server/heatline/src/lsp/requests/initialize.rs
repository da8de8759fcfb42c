//! `initialize`: what the server can do, and where the workspace is.

use super::execute_command::COMMANDS;
use crate::lsp::abilities::encoding_kind;
use crate::lsp::text::Encoding;
use crate::lsp::uri;
use std::path::PathBuf;
use tower_lsp::ls_types::{
    CallHierarchyServerCapability, CodeLensOptions, ExecuteCommandOptions, FileOperationFilter, FileOperationPattern,
    FileOperationRegistrationOptions, HoverProviderCapability, InitializeParams, InitializeResult, OneOf,
    ServerCapabilities, ServerInfo, TextDocumentSyncCapability, TextDocumentSyncKind, TextDocumentSyncOptions,
    WorkspaceFileOperationsServerCapabilities, WorkspaceFoldersServerCapabilities, WorkspaceServerCapabilities,
};

/// The answer.
pub fn answer(encoding: Encoding) -> InitializeResult {
    let sync = TextDocumentSyncOptions {
        open_close: Some(true),
        change: Some(TextDocumentSyncKind::INCREMENTAL),
        ..TextDocumentSyncOptions::default()
    };
    let folders =
        WorkspaceFoldersServerCapabilities { supported: Some(true), change_notifications: Some(OneOf::Left(true)) };
    let operations = WorkspaceFileOperationsServerCapabilities {
        did_rename: Some(FileOperationRegistrationOptions { filters: vec![any_file()] }),
        ..WorkspaceFileOperationsServerCapabilities::default()
    };
    let commands =
        ExecuteCommandOptions { commands: COMMANDS.map(String::from).into(), ..ExecuteCommandOptions::default() };
    InitializeResult {
        capabilities: ServerCapabilities {
            position_encoding: Some(encoding_kind(encoding)),
            text_document_sync: Some(TextDocumentSyncCapability::Options(sync)),
            inlay_hint_provider: Some(OneOf::Left(true)),
            code_lens_provider: Some(CodeLensOptions { resolve_provider: Some(false) }),
            hover_provider: Some(HoverProviderCapability::Simple(true)),
            call_hierarchy_provider: Some(CallHierarchyServerCapability::Simple(true)),
            execute_command_provider: Some(commands),
            workspace: Some(WorkspaceServerCapabilities {
                workspace_folders: Some(folders),
                file_operations: Some(operations),
            }),
            ..ServerCapabilities::default()
        },
        server_info: Some(ServerInfo {
            name: env!("CARGO_PKG_NAME").into(),
            version: Some(env!("CARGO_PKG_VERSION").into()),
        }),
        ..InitializeResult::default()
    }
}

/// Files and folders wherever they are.
fn any_file() -> FileOperationFilter {
    let pattern = FileOperationPattern { glob: "**/*".into(), matches: None, options: None };
    FileOperationFilter { scheme: Some("file".into()), pattern }
}

/// The workspace folders, or the one root of older clients.
pub fn roots(params: &InitializeParams) -> Vec<PathBuf> {
    let folders = params.workspace_folders.iter().flatten();
    let folders: Vec<PathBuf> = folders.filter_map(|folder| uri::to_path(&folder.uri)).collect();
    if !folders.is_empty() {
        return folders;
    }
    #[allow(deprecated, reason = "older clients know nothing else")]
    let root = params.root_uri.as_ref().and_then(uri::to_path).or_else(|| params.root_path.as_ref().map(PathBuf::from));
    root.into_iter().collect()
}
