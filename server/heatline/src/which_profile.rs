//! Which profile a path means: itself, or the newest in a folder.

use crate::load::{is_folder_profile, is_profile, recognise_folder};
use anyhow::{Context, anyhow};
use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Folders in a folder are looked into for profiles to propose, so many.
const MOST_FOLDERS: usize = 200;

/// So many profiles are proposed or named.
const MOST_NAMED: usize = 3;

/// The profile that a path means: itself, or the newest profile in a folder that is none.
///
/// # Errors
/// If there is nothing at the path, or no profile in the folder.
pub fn profile_at(path: &Path) -> anyhow::Result<PathBuf> {
    let mut profiles = profiles_at(path)?.into_iter();
    profiles.next().ok_or_else(|| no_profile(path))
}

/// What to say of a folder of which one profile of several was taken: which, and the others.
pub fn choice_sentence(path: &Path) -> Option<String> {
    let profiles = profiles_at(path).ok()?;
    let (taken, others) = profiles.split_first().filter(|(_, others)| !others.is_empty())?;
    let name = |path: &PathBuf| path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let named: Vec<String> = others.iter().take(MOST_NAMED).map(name).collect();
    let more =
        if others.len() > MOST_NAMED { format!(" and {} more", others.len() - MOST_NAMED) } else { String::new() };
    Some(format!(
        "{} is the newest of {} profiles in this folder; name another to see it: {}{more}",
        name(taken),
        profiles.len(),
        named.join(", ")
    ))
}

/// The path itself unless it is a folder that is no profile; else the profiles in it, the newest first.
fn profiles_at(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if path.as_os_str() == "-" || !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let as_folder = recognise_folder(path);
    if let Ok(Some(_)) = as_folder {
        return Ok(vec![path.to_owned()]);
    }
    let entries = std::fs::read_dir(path).with_context(|| path.display().to_string())?;
    let dated = entries.flatten().filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())));
    let mut profiles: Vec<(SystemTime, PathBuf)> = dated.filter(|(_, path)| is_profile(path)).collect();
    // Of two made at one time (a fresh checkout), the first by name that is not an older copy.
    let is_old = |path: &Path| path.extension().is_some_and(|extension| extension == "old");
    profiles.sort_by_cached_key(|(time, path)| (is_old(path), Reverse(*time), path.clone()));
    match as_folder {
        Err(error) if profiles.is_empty() => Err(anyhow!(error).context(path.display().to_string())),
        _ => Ok(profiles.into_iter().map(|(_, path)| path).collect()),
    }
}

/// What to say of a folder without profiles.
fn no_profile(path: &Path) -> anyhow::Error {
    let below = profiles_below(path);
    let advice = if below.is_empty() {
        "record one with 'perf record -g ./prog'".to_owned()
    } else {
        format!("there is one in a folder below: {}", below.join(", "))
    };
    let expected = "expected a perf.data, SPT, pprof or .heatline file or a uftrace folder";
    anyhow!("{}: no profile in this folder; {expected}, {advice}", path.display())
}

/// Profiles of the names that recorders use, in the folders of a folder.
fn profiles_below(path: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten().take(MOST_FOLDERS);
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    let candidates = folders.iter().flat_map(|folder| ["perf.data", "uftrace.data"].map(|name| folder.join(name)));
    candidates.filter(|path| is_profile(path)).take(MOST_NAMED).map(|path| path.display().to_string()).collect()
}

/// Whether a file is part of a profile that is a folder.
pub fn is_member(path: &Path) -> bool {
    path.parent().is_some_and(|folder| is_folder_profile(folder_or_here(folder)))
}

/// What to say of such a file.
pub fn member(path: &Path) -> anyhow::Error {
    let folder = folder_or_here(path.parent().unwrap_or(path));
    anyhow!("{}: a part of the recording {1}; name the folder: {1}", path.display(), folder.display())
}

fn folder_or_here(folder: &Path) -> &Path {
    if folder.as_os_str().is_empty() { Path::new(".") } else { folder }
}
