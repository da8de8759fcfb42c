//! What is missing or damaged, in words.

use super::info::Info;
use super::reading::Reading;
use super::spaces::Space;
use super::switches::Switches;
use super::tasks::Tasks;
use heatline_profile::{FileOffset, Problems};
use std::io;

/// Threads that are named; of more only the number is said.
const NAMED: usize = 5;

pub(super) fn missing(member: &str, error: &io::Error, problems: &mut Problems) {
    let lost = match member {
        "info" => "it says how the recording was made",
        "task.txt" => "without it threads are not told apart by process, nor addresses by program",
        "extern.dat" => "messages of other programs are missing",
        "kernel_header" => "without it the functions of the kernel are not shown",
        _ if member.ends_with(".map") => "without it the functions of a program have no names",
        _ => "its calls are missing",
    };
    problems.add("missing-file", 1, None, format!("{member} cannot be read ({error}); {lost}, copy or record it anew"));
}

pub(super) fn missing_threads(tids: &[i32], problems: &mut Problems) {
    if tids.is_empty() {
        return;
    }
    let mut names: Vec<String> = tids.iter().take(NAMED).map(|tid| format!("{tid}.dat")).collect();
    if tids.len() > NAMED {
        names.push(format!("{} more", tids.len() - NAMED));
    }
    let message = format!(
        "the calls of some threads are missing: expected {}, found no such file; copy or record anew",
        names.join(", ")
    );
    problems.add("missing-file", tids.len() as u64, None, message);
}

pub(super) fn too_many(found: usize, most: usize, problems: &mut Problems) {
    if found > most {
        let message = format!("only {most} of {found} threads are read");
        problems.add("too-many-files", (found - most) as u64, None, message);
    }
}

pub(super) fn info(info: &Info, problems: &mut Problems) {
    if let Some(version) = info.strange_version {
        let message = format!(
            "info: expected version 3 or 4 of the format, found {version}; what is shown may be wrong, a later Heatline may know it"
        );
        problems.add("unknown-version", 1, Some(FileOffset(8)), message);
    } else if info.unfinished {
        let message = "the recorder did not finish info; what was written is shown, end uftrace record with Ctrl-C and wait for it";
        problems.add("unclosed", 1, None, message);
    }
}

pub(super) fn no_kernel_functions(info: &Info, problems: &mut Problems) {
    if info.has_kernel {
        let message = "functions of the kernel were traced, but the files with them (kernel-cpu<n>.dat) are missing; their time \
                       belongs to the functions that called the kernel, copy them too";
        problems.add("missing-file", 1, None, message);
    }
}

pub(super) fn kernel_header(problems: &mut Problems) {
    let message = "kernel_header is damaged: expected the page size, the byte order and the formats of events/header_page, \
                   funcgraph_entry and funcgraph_exit; functions of the kernel are not shown, copy or record it anew";
    problems.add("damaged-record", 1, None, message);
}

pub(super) fn tasks(tasks: &Tasks, problems: &mut Problems) {
    if tasks.strange_lines > 0 {
        let message = "lines of task.txt are damaged and were skipped; programs or threads may be confused, copy or record it anew";
        problems.add("damaged-record", tasks.strange_lines, None, message);
    }
    if tasks.dropped_lines > 0 {
        let message = "task.txt names more threads and programs than are told apart; the rest was left out";
        problems.add("too-many-tasks", tasks.dropped_lines, None, message);
    }
}

pub(super) fn map(member: &str, space: &Space, bytes: &[u8], problems: &mut Problems) {
    let cut = !bytes.is_empty() && !bytes.ends_with(b"\n");
    if cut || (space.is_empty() && !bytes.is_empty()) {
        let message = format!("{member} is damaged; some functions have no names, copy or record it anew");
        problems.add("truncated", 1, Some(FileOffset(bytes.len() as u64)), message);
    }
}

pub(super) fn counts(reading: &Reading<'_>, problems: &mut Problems) {
    let counts = &reading.counts;
    let notes: [(&str, u64, &str); 6] = [
        (
            "lost-samples",
            counts.lost,
            "the recorder could not keep up and lost records; calls and times are missing where that happened, record with \
             larger buffers (-b) or fewer functions (-F, -N, -t)",
        ),
        (
            "truncated",
            counts.cut,
            "files of threads end in the middle of a record; what comes before is shown, record or copy them anew for the rest",
        ),
        (
            "damaged-record",
            counts.damaged,
            "bytes in files of threads are no records and were skipped; copy or record them anew",
        ),
        (
            "out-of-order",
            counts.out_of_order,
            "records lie before the one in front of them in time; their moments were taken as that of the other",
        ),
        (
            "unmatched-calls",
            counts.unmatched,
            "callers of some functions are not in the recording and are shown as [unknown]",
        ),
        (
            "too-many-paths",
            reading.tree.folded,
            "there are so many different call paths that some calls were given to their callers; record fewer functions (-F, -N, -D)",
        ),
    ];
    for (kind, count, message) in notes.into_iter().filter(|(_, count, _)| *count > 0) {
        problems.add(kind, count, None, message);
    }
}

pub(super) fn switches(switches: &Switches<'_>, info: &Info, problems: &mut Problems) {
    if switches.damaged > 0 {
        let message = "files of perf events (perf-cpu<n>.dat) are cut or damaged; some waiting is counted as running, copy or record them anew";
        problems.add("truncated", switches.damaged, None, message);
    }
    let functions = switches.function_counts();
    let notes: [(&str, u64, &str); 3] = [
        (
            "lost-samples",
            functions.lost,
            "the kernel could not keep up and lost records of its functions; their calls are missing and some end late, record \
             with a larger buffer (-b) or fewer functions (-K, -D)",
        ),
        ("skipped-events", functions.others, "events of the kernel are not shown; of its records only functions are"),
        (
            "truncated",
            functions.damaged,
            "files of the kernel's functions (kernel-cpu<n>.dat) are cut or damaged; what can be told is shown, copy or record them anew",
        ),
    ];
    for (kind, count, message) in notes.into_iter().filter(|(_, count, _)| *count > 0) {
        problems.add(kind, count, None, message);
    }
    if switches.dropped > 0 {
        problems.add(
            "too-many-files",
            switches.dropped as u64,
            None,
            "only the first 1024 files of perf events are read",
        );
    }
    if info.has_events == Some(true) && !switches.is_present {
        let message = "scheduling was recorded, but the files with it (perf-cpu<n>.dat) are missing; only elapsed times are known, copy them too";
        problems.add("missing-file", 1, None, message);
    }
}

pub(super) fn messages(found: io::Result<u64>, problems: &mut Problems) {
    match found {
        Ok(0) => {}
        Ok(count) => {
            let message =
                "messages of other programs (extern.dat) are not shown; 'uftrace replay' shows them between the calls";
            problems.add("skipped-messages", count, None, message);
        }
        Err(error) => missing("extern.dat", &error, problems),
    }
}
