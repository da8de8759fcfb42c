//! The messages of `profile.proto` as they are, ids unresolved.

use super::PprofError;
use super::wire::{Fields, Malformed, Value, numbers};

/// `Profile`.
#[derive(Debug, Default)]
pub(super) struct Message<'a> {
    pub types: Vec<ValueType>,
    pub samples: Vec<&'a [u8]>,
    pub mappings: Vec<Mapping>,
    pub locations: Vec<Location>,
    pub functions: Vec<Function>,
    pub strings: Vec<&'a [u8]>,
    pub drop_frames: u64,
    pub keep_frames: u64,
    pub duration_ns: i64,
    pub period_type: Option<ValueType>,
    pub period: i64,
    pub default_type: u64,
}

/// `ValueType`: numbers of strings.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct ValueType {
    pub name: u64,
    pub unit: u64,
}

/// `Mapping`.
#[derive(Debug, Default)]
pub(super) struct Mapping {
    pub id: u64,
    pub start: u64,
    pub limit: u64,
    pub offset: u64,
    pub file: u64,
    pub build_id: u64,
}

/// `Location`.
#[derive(Debug, Default)]
pub(super) struct Location {
    pub id: u64,
    pub mapping: u64,
    pub address: u64,
    /// Function and line, innermost first.
    pub lines: Vec<(u64, i64)>,
}

/// `Function`.
#[derive(Debug, Default)]
pub(super) struct Function {
    pub id: u64,
    pub name: u64,
    pub system_name: u64,
    pub file: u64,
    pub line: i64,
}

/// `Sample`. Kept between samples, so that nothing is allocated for each.
#[derive(Debug, Default)]
pub(super) struct Sample {
    /// Innermost first.
    pub locations: Vec<u64>,
    pub values: Vec<i64>,
    pub labels: Vec<Label>,
}

/// `Label`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Label {
    pub key: u64,
    pub text: u64,
    pub number: i64,
}

/// Splits a message up. Samples stay as they are: they are most of it and needed once.
pub(super) fn parse(bytes: &[u8]) -> Result<Message<'_>, PprofError> {
    let mut message = Message::default();
    for field in Fields::of(bytes) {
        match field.map_err(in_part("profile"))? {
            (1, Value::Bytes(bytes)) => message.types.push(value_type(bytes)?),
            (2, Value::Bytes(bytes)) => message.samples.push(bytes),
            (3, Value::Bytes(bytes)) => message.mappings.push(mapping(bytes)?),
            (4, Value::Bytes(bytes)) => message.locations.push(location(bytes)?),
            (5, Value::Bytes(bytes)) => message.functions.push(function(bytes)?),
            (6, Value::Bytes(bytes)) => message.strings.push(bytes),
            (7, Value::Number(number)) => message.drop_frames = number,
            (8, Value::Number(number)) => message.keep_frames = number,
            (10, Value::Number(number)) => message.duration_ns = number as i64,
            (11, Value::Bytes(bytes)) => message.period_type = Some(value_type(bytes)?),
            (12, Value::Number(number)) => message.period = number as i64,
            (14, Value::Number(number)) => message.default_type = number,
            _ => {}
        }
    }
    Ok(message)
}

fn in_part(what: &'static str) -> impl Fn(Malformed) -> PprofError {
    move |Malformed { at }| PprofError::Malformed { at, what }
}

fn value_type(bytes: &[u8]) -> Result<ValueType, PprofError> {
    let mut of = ValueType::default();
    for field in Fields::of(bytes) {
        match field.map_err(in_part("sample type"))? {
            (1, Value::Number(number)) => of.name = number,
            (2, Value::Number(number)) => of.unit = number,
            _ => {}
        }
    }
    Ok(of)
}

fn mapping(bytes: &[u8]) -> Result<Mapping, PprofError> {
    let mut of = Mapping::default();
    for field in Fields::of(bytes) {
        match field.map_err(in_part("mapping"))? {
            (1, Value::Number(number)) => of.id = number,
            (2, Value::Number(number)) => of.start = number,
            (3, Value::Number(number)) => of.limit = number,
            (4, Value::Number(number)) => of.offset = number,
            (5, Value::Number(number)) => of.file = number,
            (6, Value::Number(number)) => of.build_id = number,
            _ => {}
        }
    }
    Ok(of)
}

fn location(bytes: &[u8]) -> Result<Location, PprofError> {
    let mut of = Location::default();
    for field in Fields::of(bytes) {
        match field.map_err(in_part("location"))? {
            (1, Value::Number(number)) => of.id = number,
            (2, Value::Number(number)) => of.mapping = number,
            (3, Value::Number(number)) => of.address = number,
            (4, Value::Bytes(bytes)) => of.lines.push(line(bytes)?),
            _ => {}
        }
    }
    Ok(of)
}

fn line(bytes: &[u8]) -> Result<(u64, i64), PprofError> {
    let mut of = (0, 0);
    for field in Fields::of(bytes) {
        match field.map_err(in_part("line"))? {
            (1, Value::Number(number)) => of.0 = number,
            (2, Value::Number(number)) => of.1 = number as i64,
            _ => {}
        }
    }
    Ok(of)
}

fn function(bytes: &[u8]) -> Result<Function, PprofError> {
    let mut of = Function::default();
    for field in Fields::of(bytes) {
        match field.map_err(in_part("function"))? {
            (1, Value::Number(number)) => of.id = number,
            (2, Value::Number(number)) => of.name = number,
            (3, Value::Number(number)) => of.system_name = number,
            (4, Value::Number(number)) => of.file = number,
            (5, Value::Number(number)) => of.line = number as i64,
            _ => {}
        }
    }
    Ok(of)
}

impl Sample {
    /// Takes over what the bytes of another sample say.
    pub fn parse(&mut self, bytes: &[u8]) -> Result<(), PprofError> {
        let malformed = in_part("sample");
        self.locations.clear();
        self.values.clear();
        self.labels.clear();
        for field in Fields::of(bytes) {
            match field.map_err(&malformed)? {
                (1, value) => numbers(value, |id| self.locations.push(id)).map_err(&malformed)?,
                (2, value) => numbers(value, |number| self.values.push(number as i64)).map_err(&malformed)?,
                (3, Value::Bytes(bytes)) => self.labels.push(label(bytes)?),
                _ => {}
            }
        }
        Ok(())
    }
}

fn label(bytes: &[u8]) -> Result<Label, PprofError> {
    let mut of = Label::default();
    for field in Fields::of(bytes) {
        match field.map_err(in_part("label"))? {
            (1, Value::Number(number)) => of.key = number,
            (2, Value::Number(number)) => of.text = number,
            (3, Value::Number(number)) => of.number = number as i64,
            _ => {}
        }
    }
    Ok(of)
}
