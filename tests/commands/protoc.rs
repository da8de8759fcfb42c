//! pprof files through protoc, which knows nothing of us: text to bytes and back.
#![allow(dead_code, reason = "two test programs use it, each a part")]

use std::io::Write;
use std::process::{Command, Stdio};

/// The fields of the format, by their published numbers.
const SCHEMA: &str = "syntax = \"proto3\"; package perftools.profiles;
message Profile {
  repeated ValueType sample_type = 1; repeated Sample sample = 2; repeated Mapping mapping = 3;
  repeated Location location = 4; repeated Function function = 5; repeated string string_table = 6;
  int64 drop_frames = 7; int64 keep_frames = 8; int64 time_nanos = 9; int64 duration_nanos = 10;
  ValueType period_type = 11; int64 period = 12; repeated int64 comment = 13; int64 default_sample_type = 14;
}
message ValueType { int64 type = 1; int64 unit = 2; }
message Sample { repeated uint64 location_id = 1; repeated int64 value = 2; repeated Label label = 3; }
message Label { int64 key = 1; int64 str = 2; int64 num = 3; int64 num_unit = 4; }
message Mapping {
  uint64 id = 1; uint64 memory_start = 2; uint64 memory_limit = 3; uint64 file_offset = 4; int64 filename = 5;
  int64 build_id = 6; bool has_functions = 7; bool has_filenames = 8; bool has_line_numbers = 9;
  bool has_inline_frames = 10;
}
message Location { uint64 id = 1; uint64 mapping_id = 2; uint64 address = 3; repeated Line line = 4; bool is_folded = 5; }
message Line { uint64 function_id = 1; int64 line = 2; int64 column = 3; }
message Function { int64 id = 1; int64 name = 2; int64 system_name = 3; int64 filename = 4; int64 start_line = 5; }
";

/// The bytes of a profile in text form.
pub fn encode(text: &str) -> Vec<u8> {
    run("--encode", text.as_bytes())
}

/// The text form of a profile, one field a line.
pub fn decode(bytes: &[u8]) -> String {
    String::from_utf8(run("--decode", bytes)).expect("text")
}

fn run(direction: &str, input: &[u8]) -> Vec<u8> {
    let folder =
        std::env::temp_dir().join(format!("heatline-protoc-{}-{:?}", std::process::id(), std::thread::current().id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("profile.proto"), SCHEMA).expect("a schema");
    let mut protoc = Command::new("protoc");
    protoc.arg(format!("{direction}=perftools.profiles.Profile")).arg("profile.proto").current_dir(&folder);
    let output = pipe(&mut protoc, input);
    let _ = std::fs::remove_dir_all(folder);
    output
}

/// What `gzip` makes of some bytes.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    pipe(Command::new("gzip").args(["-9", "-n", "-c"]), bytes)
}

/// What was packed.
pub fn gunzip(bytes: &[u8]) -> Vec<u8> {
    pipe(Command::new("gzip").args(["-d", "-c"]), bytes)
}

fn pipe(command: &mut Command, input: &[u8]) -> Vec<u8> {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("an installed program");
    let mut stdin = child.stdin.take().expect("a pipe");
    let input = input.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().expect("output");
    let _ = writer.join();
    assert!(output.status.success(), "{command:?}");
    output.stdout
}
