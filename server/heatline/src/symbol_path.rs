//! Symbol stores, in the syntax of `_NT_SYMBOL_PATH`.
//!
//! `C:\symbols;srv*D:\cache*\\host\store`: parts apart by semicolons, each a folder or a chain of stores. Only folders
//! are looked into; a server needs a network, which is used by no part of this program.

use heatline_profile::PdbId;
use std::path::{Path, PathBuf};

/// The folders of a symbol path, in order, each once.
pub fn folders(symbol_path: &str) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = Vec::new();
    for part in symbol_path.split(';').map(str::trim).filter(|part| !part.is_empty()) {
        let mut stores = part.split('*').map(str::trim);
        let first = stores.next().unwrap_or_default();
        let keyword = first.to_ascii_lowercase();
        if !matches!(keyword.as_str(), "srv" | "symsrv" | "cache") {
            push(&mut folders, first);
        }
        for store in stores.filter(|store| !store.to_ascii_lowercase().ends_with(".dll")) {
            push(&mut folders, store);
        }
    }
    folders
}

fn push(folders: &mut Vec<PathBuf>, text: &str) {
    let is_server = text.contains("://");
    if is_server {
        tracing::debug!(server = text, "a symbol server is not asked");
    }
    let folder = PathBuf::from(text);
    if !text.is_empty() && !is_server && !folders.contains(&folder) {
        folders.push(folder);
    }
}

/// Where a file with an identity may lie in a folder: as it is, or as a store of two or three levels keeps it.
pub fn places(folder: &Path, name: &str, id: &PdbId) -> [PathBuf; 3] {
    let key = id.store_key();
    let store = |root: PathBuf| root.join(name).join(&key).join(name);
    let prefix: String = name.chars().take(2).collect();
    [folder.join(name), store(folder.to_owned()), store(folder.join(prefix))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_taken_from_all_forms_and_servers_left_out() {
        let path = "/plain; srv*/cache*https://symbols.example/x ;symsrv*symsrv.dll*/store;cache*/plain;;";
        assert_eq!(folders(path), ["/plain", "/cache", "/store"].map(PathBuf::from));
        assert!(folders("").is_empty());
    }

    #[test]
    fn stores_have_two_or_three_levels() {
        let id = PdbId { guid: [0; 16], age: 43 };
        let key = "000000000000000000000000000000002B";
        let found = places(Path::new("/s"), "app.pdb", &id);
        assert_eq!(found[1], PathBuf::from(format!("/s/app.pdb/{key}/app.pdb")));
        assert_eq!(found[2], PathBuf::from(format!("/s/ap/app.pdb/{key}/app.pdb")));
    }
}
