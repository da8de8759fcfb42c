//! Costs on the code of today: programs built, recorded, edited and committed in repositories that the tests make.

use super::lab::{heatline, perf, report};
use super::spt::Fixture;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Line 7 is where it spends its time.
const BUSY: &str = "volatile unsigned sink;

/* Mixes. */
static __attribute__((noinline)) unsigned busy(unsigned hash, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        hash = (hash ^ i) * 16777619u + (hash >> 13);
    return hash;
}

int main(void)
{
    sink = busy(7, 60000000);
    return 0;
}
";

/// The hottest line of [`BUSY`].
const HOT: u64 = 7;

/// Long before and long after the test builds and records anything.
const BEFORE: &str = "2020-02-02T00:00:00Z";
const AFTER: &str = "2099-01-01T00:00:00Z";

/// A repository with `busy.c`.
struct Repository {
    folder: TempDir,
}

impl Repository {
    /// With the first commit made long ago, before anything is built.
    fn new() -> Self {
        let repository = Self::empty();
        git(&repository.path(""), BEFORE, &["add", "busy.c"]);
        git(&repository.path(""), BEFORE, &["commit", "-q", "-m", "first"]);
        repository
    }

    fn empty() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let repository = Repository { folder };
        repository.write(BUSY);
        git(&repository.path(""), BEFORE, &["init", "-q", "-b", "main"]);
        repository
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().expect("it is there").join(name)
    }

    fn write(&self, text: &str) {
        std::fs::write(self.path("busy.c"), text).expect("a source");
    }

    fn git(&self, date: &str, arguments: &[&str]) {
        git(&self.path(""), date, arguments);
    }

    fn record(&self, compiler: &[&str]) -> PathBuf {
        record(&self.path(""), compiler)
    }
}

/// Builds `busy.c` of a folder and records it.
fn record(folder: &Path, compiler: &[&str]) -> PathBuf {
    let mut compile = Command::new(compiler[0]);
    compile.args(&compiler[1..]).args(["-g", "-O1", "busy.c", "-o", "busy"]);
    run(folder, &mut compile);
    let mut record = perf();
    record.args(["record", "-q", "-N", "-e", "cpu-clock", "-o", "perf.data", "./busy"]);
    run(folder, &mut record);
    folder.join("perf.data")
}

/// The same, and edits the text afterwards.
fn recorded_and_edited(folder: &Path) -> PathBuf {
    let profile = record(folder, &["gcc"]);
    std::fs::write(folder.join("busy.c"), edited()).expect("a source");
    profile
}

fn git(folder: &Path, date: &str, arguments: &[&str]) {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=Nobody", "-c", "user.email=nobody@example.org", "-c", "core.autocrlf=false"]);
    git.args(arguments).env("GIT_AUTHOR_DATE", date).env("GIT_COMMITTER_DATE", date);
    git.env("GIT_CONFIG_NOSYSTEM", "1").env("HOME", folder);
    run(folder, &mut git);
}

fn run(folder: &Path, command: &mut Command) {
    let output = command.current_dir(folder).output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// By line of the build: the line now and how it was placed.
fn places(profile: &Path, file: &str) -> BTreeMap<u64, (u64, String)> {
    let report = report(profile, &["--by", "line"]);
    let rows = report["rows"].as_array().expect("rows").iter();
    let place = |row: &Value| {
        row["file"].as_str().filter(|path| path.ends_with(file))?;
        let line = row["line"].as_u64()?;
        let now = row["line_now"].as_u64().unwrap_or(line);
        Some((line, (now, row["placement"].as_str().expect("a placement").to_owned())))
    };
    rows.filter_map(place).collect()
}

/// The hottest line is placed so, and every line that is said to be unchanged has its text.
#[track_caller]
fn check(repository: &Repository, profile: &Path, now: &str, hot: (u64, &str)) {
    let places = places(profile, "busy.c");
    assert_eq!(places.get(&HOT), Some(&(hot.0, hot.1.to_owned())), "{places:?}");
    let text = |text: &str, line: u64| text.lines().nth(line as usize - 1).map(|line| line.trim().to_owned());
    for (line, (there, placement)) in places {
        if placement == "exact" || placement == "moved" {
            assert_eq!(text(BUSY, line), text(now, there), "line {line} on {there} in {:?}", repository.path(""));
        }
    }
}

/// The text with two lines more above the function and its hot line edited.
fn edited() -> String {
    BUSY.replace("/* Mixes. */\n", "/* Mixes. */\n/* Well. */\n\n").replace("(hash ^ i)", "(hash ^ (i + 1))")
}

#[test]
fn costs_stay_on_their_code_without_checksums() {
    let repository = Repository::new();
    let profile = repository.record(&["gcc"]);
    check(&repository, &profile, BUSY, (HOT, "exact"));

    repository.write(&edited());
    check(&repository, &profile, &edited(), (HOT + 2, "changed"));

    repository.git(AFTER, &["commit", "-q", "-a", "-m", "second"]);
    check(&repository, &profile, &edited(), (HOT + 2, "changed"));

    repository.git(AFTER, &["checkout", "-q", "-b", "other", "HEAD~1"]);
    check(&repository, &profile, BUSY, (HOT, "exact"));

    let moved = format!("// A note.\n{BUSY}");
    repository.write(&moved);
    check(&repository, &profile, &moved, (HOT + 1, "moved"));
    repository.git(AFTER, &["stash", "-q"]);
    check(&repository, &profile, BUSY, (HOT, "exact"));
    repository.git(AFTER, &["stash", "pop", "-q"]);
    check(&repository, &profile, &moved, (HOT + 1, "moved"));
}

/// A repository's sources may be elsewhere than its history.
#[test]
fn the_history_of_worktrees_and_submodules_is_found() {
    let repository = Repository::new();
    let origin = repository.path("");
    let elsewhere = tempfile::tempdir().expect("a folder");
    let tree = elsewhere.path().join("tree");
    repository.git(BEFORE, &["worktree", "add", "-q", tree.to_str().unwrap()]);
    let whole = elsewhere.path().join("whole");
    std::fs::create_dir(&whole).unwrap();
    git(&whole, BEFORE, &["init", "-q", "-b", "main"]);
    let origin = origin.to_str().unwrap();
    git(&whole, BEFORE, &["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", origin, "part"]);
    // A folder that holds nothing but a bare history and its worktrees.
    let hub = elsewhere.path().join("hub");
    git(elsewhere.path(), BEFORE, &["clone", "-q", "--bare", origin, "hub/.bare"]);
    std::fs::write(hub.join(".git"), "gitdir: ./.bare\n").unwrap();
    git(&hub, BEFORE, &["worktree", "add", "-q", "here", "main"]);
    for folder in [tree, whole.join("part"), hub.join("here")] {
        let profile = recorded_and_edited(&folder);
        let places = places(&profile, "busy.c");
        assert_eq!(places.get(&HOT), Some(&(HOT + 2, "changed".to_owned())), "{}", folder.display());
    }
}

#[test]
fn a_history_that_cannot_be_read_is_told_with_its_reason() {
    type Damage = fn(&Path);
    let damages: [(Damage, &str); 4] = [
        (|git| std::fs::remove_file(git.join("HEAD")).unwrap(), "its .git is no whole repository"),
        (|git| std::fs::remove_dir_all(git.join("objects")).unwrap(), "its .git is no whole repository"),
        (
            |git| {
                std::fs::remove_dir_all(git.join("objects")).unwrap();
                std::fs::create_dir(git.join("objects")).unwrap();
            },
            "what is checked out is missing or damaged in it; git fsck says more",
        ),
        (
            |git| {
                std::fs::remove_dir_all(git).unwrap();
                std::fs::write(git, "gitdir: ../nowhere\n").unwrap();
            },
            "its .git is no whole repository",
        ),
    ];
    let repository = Repository::new();
    let profile = recorded_and_edited(&repository.path(""));
    let kept = tempfile::tempdir().expect("a folder");
    run(kept.path(), Command::new("cp").arg("-a").arg(repository.path(".git")).arg("kept"));
    for (damage, reason) in damages {
        run(&repository.path(""), Command::new("rm").args(["-rf", ".git"]));
        run(&repository.path(""), Command::new("cp").arg("-a").arg(kept.path().join("kept")).arg(".git"));
        damage(&repository.path(".git"));
        for arguments in
            [&["report", "perf.data", "--by", "line"][..], &["diff", "perf.data", "perf.data", "--by", "line"]]
        {
            let output = heatline(&repository.path(""), arguments);
            let errors = String::from_utf8_lossy(&output.stderr).into_owned();
            let expected = format!("the history cannot be read: {reason}\n");
            assert!(output.status.success() && errors.matches(&expected).count() == 1, "{arguments:?}: {errors}");
        }
        assert_eq!(places(&profile, "busy.c")[&HOT].1, "unverified", "{reason}");
    }
}

#[test]
fn a_removed_line_is_gone_and_a_commit_in_which_the_lines_do_not_fit_is_passed_over() {
    let repository = Repository::new();
    // Newer, but with a blank where the code is that was built; then back, so that what is built is the first text.
    let blank = BUSY.replace("        hash = (hash ^ i) * 16777619u + (hash >> 13);\n", "\n        hash++;\n");
    repository.write(&blank);
    repository.git("2021-01-01T00:00:00Z", &["commit", "-q", "-a", "-m", "second"]);
    repository.write(BUSY);
    let profile = repository.record(&["gcc"]);
    let removed = BUSY.replace("        hash = (hash ^ i) * 16777619u + (hash >> 13);\n", "        continue;\n");
    repository.write(&removed);
    let places = places(&profile, "busy.c");
    assert_eq!(places[&HOT].1, "gone", "{places:?}");
    let text = annotated(&repository);
    assert!(text.contains("of the cost was on") && text.contains("gone)"), "{text}");
}

#[test]
fn costs_stay_on_their_code_by_checksum_whenever_it_was_committed() {
    let repository = Repository::empty();
    let profile = repository.record(&["clang-19", "-gdwarf-5"]);
    // What was built was not yet committed.
    repository.git(AFTER, &["add", "busy.c"]);
    repository.git(AFTER, &["commit", "-q", "-m", "what was built"]);
    repository.write(&edited());
    repository.git(AFTER, &["commit", "-q", "-a", "-m", "edited"]);
    check(&repository, &profile, &edited(), (HOT + 2, "changed"));
    repository.write(&BUSY.replace('\n', "\r\n"));
    check(&repository, &profile, BUSY, (HOT, "exact"));
    repository.git(AFTER, &["mv", "-f", "busy.c", "mixing.c"]);
    std::fs::write(repository.path("mixing.c"), format!("\n\n{BUSY}")).expect("a source");
    repository.git(AFTER, &["commit", "-q", "-a", "-m", "renamed"]);
    check(&repository, &profile, &format!("\n\n{BUSY}"), (HOT + 2, "moved"));
}

#[test]
fn a_source_that_the_compiler_embedded_needs_no_history() {
    let repository = Repository::empty();
    let profile = repository.record(&["clang-19", "-gdwarf-5", "-gembed-source"]);
    repository.write(&edited());
    check(&repository, &profile, &edited(), (HOT + 2, "changed"));
    std::fs::remove_file(repository.path("busy.c")).expect("it was there");
    let text = annotated(&repository);
    assert!(text.contains("16777619u") && text.contains("the text that was profiled"), "{text}");
}

#[test]
fn what_nothing_is_known_of_is_unverified() {
    let repository = Repository::empty();
    let profile = repository.record(&["gcc"]);
    repository.write(BUSY);
    let places = places(&profile, "busy.c");
    assert_eq!(places.get(&HOT), Some(&(HOT, "unverified".to_owned())), "{places:?}");
}

#[test]
fn another_text_shows_costs_of_functions_only() {
    let repository = Repository::new();
    repository.record(&["gcc"]);
    repository.write("// Nothing of it.\nint answer(void) { return 42; }\n\nint question(int a)\n{\n  return a;\n}\n");
    let text = annotated(&repository);
    assert!(text.contains("costs of functions only") && text.contains("busy"), "{text}");
}

#[test]
fn costs_of_a_pdb_stay_on_their_code() {
    let fixture = Fixture::new("x86_64");
    let folder = fixture.path("");
    let profile = fixture.sampled("a.spt", fixture.id);
    let before = places(&profile, "scale.cpp");
    assert!(before.iter().all(|(line, (now, placement))| now == line && placement == "exact"), "{before:?}");
    git(&folder, AFTER, &["init", "-q", "-b", "main"]);
    git(&folder, AFTER, &["add", "scale.cpp"]);
    git(&folder, AFTER, &["commit", "-q", "-m", "what was built"]);
    let text = std::fs::read_to_string(fixture.path("scale.cpp")).expect("a source");
    std::fs::write(fixture.path("scale.cpp"), format!("// New.\n{text}")).expect("a source");
    let after = places(&profile, "scale.cpp");
    let moved = before.keys().map(|line| (*line, (line + 1, "moved".to_owned())));
    assert_eq!(after, moved.collect());
}

#[test]
fn sources_are_found_under_whatever_name_the_compiler_was_told_to_record() {
    for recorded in [".", "/proc/self/cwd", "/container/build/project", "relative"] {
        let repository = Repository::empty();
        let map =
            format!("-ffile-prefix-map={}={recorded}", repository.path("").display().to_string().trim_end_matches('/'));
        let profile = repository.record(&["gcc", &map]);
        check(&repository, &profile, BUSY, (HOT, "exact"));
    }
}

#[test]
fn costs_of_generated_code_stand_in_the_file_that_it_names() {
    let repository = Repository::empty();
    std::fs::write(repository.path("grammar.y"), BUSY).expect("a source");
    repository.write(&format!("/* Generated. */\n\n#line 1 \"grammar.y\"\n{BUSY}"));
    let profile = repository.record(&["gcc"]);
    let places = places(&profile, "grammar.y");
    assert_eq!(places.get(&HOT), Some(&(HOT, "exact".to_owned())), "{places:?}");
}

/// What a command prints.
fn printed(repository: &Repository, arguments: &[&str]) -> String {
    String::from_utf8_lossy(&heatline(&repository.path(""), arguments).stdout).into_owned()
}

/// What `annotate` says of the file that holds `busy`.
fn annotated(repository: &Repository) -> String {
    printed(repository, &["annotate", "perf.data", "--source", "busy.c"])
}

#[test]
fn a_file_that_is_renamed_or_moved_keeps_its_costs_before_anything_is_committed() {
    let repository = Repository::new();
    let profile = repository.record(&["gcc"]);
    // Untracked, and edited on the way.
    let moved = format!("// A note.\n{BUSY}");
    std::fs::rename(repository.path("busy.c"), repository.path("mixing.c")).expect("it was there");
    std::fs::write(repository.path("mixing.c"), &moved).expect("a source");
    check(&repository, &profile, &moved, (HOT + 1, "moved"));
    let text = annotated(&repository);
    assert!(text.contains("mixing.c\n") && text.contains("(renamed since: it was busy.c)"), "{text}");
    // The same when version control was told.
    repository.git(AFTER, &["add", "-A", "busy.c", "mixing.c"]);
    check(&repository, &profile, &moved, (HOT + 1, "moved"));
    repository.git(AFTER, &["commit", "-q", "-m", "renamed"]);
    check(&repository, &profile, &moved, (HOT + 1, "moved"));
    // Into another folder, under the name that it had.
    std::fs::create_dir(repository.path("deep")).expect("a folder");
    repository.git(AFTER, &["mv", "mixing.c", "deep/busy.c"]);
    check(&repository, &profile, &moved, (HOT + 1, "moved"));
}

#[test]
fn a_renamed_file_is_frozen_with_the_text_that_was_built() {
    let repository = Repository::new();
    repository.record(&["gcc"]);
    repository.git(AFTER, &["mv", "busy.c", "mixing.c"]);
    repository.git(AFTER, &["rm", "-q", "--cached", "mixing.c"]);
    let folder = repository.path("");
    heatline(&folder, &["freeze", "perf.data", "-o", "kept.heatline"]);
    let elsewhere = tempfile::tempdir().expect("a folder");
    let kept = elsewhere.path().join("kept.heatline");
    std::fs::rename(repository.path("kept.heatline"), &kept).expect("it was written");
    drop(repository);
    let shown = heatline(elsewhere.path(), &["annotate", "kept.heatline", "--source", "busy.c"]);
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(text.contains("16777619u") && text.contains("the text that was profiled"), "{text}");
}

#[test]
fn a_file_that_is_only_alike_does_not_get_the_costs_of_another() {
    let repository = Repository::new();
    let alike = BUSY.replace("sink = ", "sink += ");
    std::fs::write(repository.path("alike.c"), &alike).expect("a source");
    repository.git(BEFORE, &["add", "alike.c"]);
    repository.git(BEFORE, &["commit", "-q", "-m", "alike"]);
    let profile = repository.record(&["gcc"]);
    std::fs::write(repository.path("later.c"), &alike).expect("a source");
    let before = places(&profile, "busy.c");
    assert!(before.iter().all(|(line, (now, placement))| now == line && placement == "exact"), "{before:?}");
    assert!(annotated(&repository).contains("busy.c\n"));
    // Removed, with one left that was there beside it.
    std::fs::remove_file(repository.path("later.c")).expect("it was there");
    std::fs::remove_file(repository.path("busy.c")).expect("it was there");
    let text = annotated(&repository);
    assert!(text.contains("not here any more") && !text.contains("alike.c"), "{text}");
}

#[test]
fn a_source_that_could_be_several_files_is_settled_by_the_option_that_the_warning_names() {
    let repository = Repository::empty();
    let map = format!("-ffile-prefix-map={}=/build", repository.path("").display().to_string().trim_end_matches('/'));
    let profile = repository.record(&["gcc", &map]);
    for copy in ["one", "two"] {
        std::fs::create_dir(repository.path(copy)).expect("a folder");
        std::fs::copy(repository.path("busy.c"), repository.path(copy).join("busy.c")).expect("a source");
    }
    std::fs::remove_file(repository.path("busy.c")).expect("it was there");
    let warned = heatline(&repository.path(""), &["annotate", "perf.data", "--source", "busy.c"]);
    let warning = String::from_utf8_lossy(&warned.stderr).into_owned();
    let [one, two] = ["one", "two"].map(|copy| repository.path(copy).join("busy.c").display().to_string());
    assert!(warning.contains(&format!("several files could be /build/busy.c: {one}, {two}")), "{warning}");
    let option = warning.split("like ").nth(1).expect("an example").trim();
    assert_eq!(option, format!("/build={}", repository.path("one").display()));
    let report = report(&profile, &["--by", "line", "--source-map", option]);
    assert!(!report["problems"].to_string().contains("several files"), "{report}");
    let settled =
        heatline(&repository.path(""), &["annotate", "perf.data", "--source", "busy.c", "--source-map", option]);
    let text = String::from_utf8_lossy(&settled.stdout).into_owned();
    assert!(settled.stderr.is_empty() && text.contains("one/busy.c\n") && text.contains("16777619u"), "{text}");
}

/// What `report --by line` says to people.
fn table(repository: &Repository) -> String {
    printed(repository, &["report", "perf.data", "--by", "line"])
}

#[test]
fn the_table_of_lines_says_where_they_are_now() {
    let repository = Repository::new();
    let profile = repository.record(&["gcc"]);
    let row = |text: &str| {
        let hot = format!("busy.c:{HOT} ");
        let row = text.lines().find(|line| format!("{line} ").contains(&hot)).unwrap_or_else(|| panic!("{text}"));
        row.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    let text = table(&repository);
    assert!(
        row(&text).ends_with(&[format!("busy.c:{HOT}"), "busy".into()]) && !text.contains("sources changed"),
        "{text}"
    );
    repository.write(&edited());
    let text = table(&repository);
    assert!(row(&text).join(" ").ends_with(&format!("busy.c:{HOT} ~line {}, edited busy", HOT + 2)), "{text}");
    assert!(
        text.ends_with("sources changed since the build: lines are those that were built, 'now' says where they are\n")
    );
    repository.write(&BUSY.replace("        hash = (hash ^ i) * 16777619u + (hash >> 13);\n", "        continue;\n"));
    assert!(row(&table(&repository)).join(" ").ends_with(&format!("busy.c:{HOT} gone busy")), "{}", table(&repository));
    repository.write(&format!("\n{BUSY}"));
    repository.git(AFTER, &["mv", "busy.c", "mixing.c"]);
    let text = table(&repository);
    assert!(row(&text).join(" ").ends_with(&format!("busy.c:{HOT} mixing.c:{} busy", HOT + 1)), "{text}");
    let json = report(&profile, &["--by", "line"]);
    let hot = json["rows"].as_array().expect("rows").iter().find(|row| row["line"] == HOT).expect("the hot line");
    assert_eq!(hot["file_now"], repository.path("mixing.c").display().to_string());
    repository.git(AFTER, &["mv", "mixing.c", "busy.c"]);
    repository.write("// Nothing of it.\nint answer(void) { return 42; }\n\nint question(int a)\n{\n  return a;\n}\n");
    let text = table(&repository);
    assert!(text.contains("of the profiled lines are left, so its lines are placed nowhere"), "{text}");
}

#[test]
fn the_table_of_lines_says_what_nothing_is_known_of() {
    let repository = Repository::empty();
    repository.record(&["gcc"]);
    repository.write(BUSY);
    let text = table(&repository);
    assert!(text.contains("busy.c: nothing tells whether this is the text of the build"), "{text}");
}

#[test]
fn sources_that_are_asked_for_in_vain_are_said_and_own_ones_come_first() {
    let repository = Repository::new();
    repository.record(&["gcc"]);
    let asked = heatline(&repository.path(""), &["annotate", "perf.data", "--source", "bsy.c"]);
    let warning = String::from_utf8_lossy(&asked.stderr).into_owned();
    assert!(warning.contains("--source bsy.c: no source with cost has such a path or name; write"), "{warning}");
    assert!(warning.contains("busy.c") && asked.stdout.is_empty(), "{warning}");
    let shown = heatline(&repository.path(""), &["annotate", "perf.data"]);
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    let first = text.lines().find(|line| line.ends_with(".c") || line.ends_with(".h")).expect("a source");
    assert!(first.ends_with("busy.c"), "{text}");
}

#[test]
fn a_comparison_of_lines_says_that_sources_changed_since_the_build() {
    let repository = Repository::new();
    let profile = repository.record(&["gcc"]);
    std::fs::copy(&profile, repository.path("before.data")).expect("a copy");
    let compared = |by: &str| {
        let shown = heatline(&repository.path(""), &["diff", "before.data", "perf.data", "--by", by]);
        String::from_utf8_lossy(&shown.stdout).into_owned()
    };
    assert!(!compared("line").contains("changed since the build"));
    repository.write(&edited());
    let text = compared("line");
    assert!(text.contains("busy.c changed since the build: lines are those that were built"), "{text}");
    assert!(!compared("function").contains("changed since the build"));
}
