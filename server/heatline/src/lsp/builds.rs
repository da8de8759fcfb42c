//! Whether the binaries that a profile was recorded of are still those builds.

use crate::load::Loaded;
use crate::storage::FileStorage;
use heatline_profile::Module;
use heatline_symbols::{Image, Nowhere};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The binaries that were used, of modules whose build is known.
pub fn binaries(loaded: &Loaded) -> impl Iterator<Item = (&Module, &PathBuf)> {
    let modules = loaded.model.profile().modules.iter().zip(&loaded.binaries);
    modules.filter(|(module, _)| module.identity.is_some()).filter_map(|(module, path)| Some((module, path.as_ref()?)))
}

/// What to say of the binaries at `paths` that are another build by now. Reads their headers.
pub fn rebuilt(loaded: &Loaded, paths: &[PathBuf]) -> Vec<String> {
    let changed = binaries(loaded).filter(|(_, path)| paths.contains(path));
    let other = changed.filter(|(module, path)| !is_build(module, path));
    let message = |(module, _): (&Module, &PathBuf)| {
        let name = module.base_name();
        format!("{name} was built again since it was recorded: the costs are of the build before; record again")
    };
    other.map(message).collect()
}

fn is_build(module: &Module, path: &Path) -> bool {
    let image = FileStorage::open(path).ok().and_then(|storage| Image::open(Arc::new(storage), &Nowhere).ok());
    image.is_some_and(|image| image.identity() == module.identity.as_ref())
}
