//! What is no profile, and folders that hold several.

use super::lab::heatline;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/quickstart").canonicalize().unwrap()
}

#[track_caller]
fn refused(folder: &Path, path: &str, parts: &[&str]) {
    for command in ["report", "annotate", "dump"] {
        let output = heatline(folder, &[command, path]);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && errors.lines().count() == 1, "{errors}");
        parts.iter().for_each(|part| assert!(errors.contains(part), "{command}: no {part} in {errors}"));
    }
}

#[test]
fn what_is_no_profile_is_called_by_its_name_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::copy(example().join("neighbours"), at.join("app")).unwrap();
    std::fs::write(at.join("empty"), "").unwrap();
    std::fs::write(at.join("notes.txt"), "to do: record the program\n").unwrap();
    std::fs::create_dir_all(at.join("nothing/deep")).unwrap();
    refused(at, "app", &["app: not a profile", "found an ELF binary", "perf record -g ./prog"]);
    refused(at, "empty", &["found an empty file", "record again"]);
    refused(at, "notes.txt", &["found text that begins 'to do: record the progra…'"]);
    refused(at, "nothing", &["nothing: no profile in this folder", "perf record -g ./prog"]);
    std::fs::copy(example().join("perf.data"), at.join("nothing/deep/perf.data")).unwrap();
    refused(at, "nothing", &["there is one in a folder below: nothing/deep/perf.data"]);
}

#[test]
fn a_part_of_a_recorded_folder_is_answered_with_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let session = folder.path().join("uftrace.data");
    std::fs::create_dir(&session).unwrap();
    let header = [&b"Ftrace!\0"[..], &[4, 0, 0, 0], &[40, 0], &[1, 2], &[0; 24]].concat();
    std::fs::write(session.join("info"), header).unwrap();
    std::fs::write(session.join("1000.dat"), [1; 64]).unwrap();
    for member in ["info", "1000.dat"] {
        refused(
            folder.path(),
            &format!("uftrace.data/{member}"),
            &["a part of the recording uftrace.data; name the folder"],
        );
    }
}

#[test]
fn of_several_profiles_in_a_folder_it_is_said_which_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    for (age, name) in ["newest.data", "perf.data", "c.data", "b.data", "a.data", "newer.old"].iter().enumerate() {
        std::fs::copy(example().join("perf.data"), folder.path().join(name)).unwrap();
        let written = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 - age as u64);
        std::fs::File::options().write(true).open(folder.path().join(name)).unwrap().set_modified(written).unwrap();
    }
    let sentence = "newest.data is the newest of 6 profiles in this folder; name another to see it: perf.data, c.data, b.data and 2 more";
    let run = |arguments: &[&str]| {
        let output = heatline(folder.path(), arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    for command in ["report", "annotate"] {
        let (text, _) = run(&[command, "."]);
        assert!(text.contains(sentence) && text.starts_with("./newest.data"), "{text}");
        assert!(!run(&[command, "perf.data"]).0.contains("is the newest"));
    }
    assert!(run(&["dump", "."]).1.contains(sentence));
}

#[test]
fn headings_tell_inclusive_samples_from_others() {
    let heading = |options: &[&str]| {
        let output = heatline(&example(), &[&["report", "perf.data"], options].concat());
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().find(|line| line.contains("exclusive  ")).unwrap_or_default().to_owned()
    };
    assert!(heading(&[]).contains("exclusive  inclusive  incl samples"));
    let by_thread = heading(&["--by", "thread"]);
    assert!(by_thread.contains("samples") && !by_thread.contains("incl"), "{by_thread}");
}
