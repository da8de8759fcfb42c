//! Writes perf.data files by hand, in either byte order, for what cannot be recorded here.

/// The byte order of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    Little,
    Big,
}

pub const USER: u64 = -512i64 as u64;
pub const KERNEL: u64 = -128i64 as u64;

/// Modes of a record header's `misc`.
pub const IN_KERNEL: u16 = 1;
pub const IN_USER: u16 = 2;

const MMAP: u64 = 1 << 8;
const COMM: u64 = 1 << 9;
const TASK: u64 = 1 << 13;
const SAMPLE_ID_ALL: u64 = 1 << 18;
const EXCLUDE_GUEST: u64 = 1 << 20;
const MMAP2: u64 = 1 << 23;
const COMM_EXEC: u64 = 1 << 24;

/// One event of a file.
#[derive(Clone, Debug)]
pub struct EventSpec {
    pub kind: u32,
    pub config: u64,
    pub period: u64,
    pub sample_type: u64,
    pub read_format: u64,
    pub branch_sample_type: u64,
    pub more_flags: u64,
    pub ids: Vec<u64>,
}

/// IP, TID, TIME, CALLCHAIN, CPU, PERIOD: the fields of the samples that [`Writer::sample`] writes.
pub const SAMPLE_TYPE: u64 = 1 | 2 | 4 | 32 | 128 | 256;

impl Default for EventSpec {
    /// `cpu-clock` with chains.
    fn default() -> Self {
        EventSpec {
            kind: 1,
            config: 0,
            period: 1000,
            sample_type: SAMPLE_TYPE,
            read_format: 0,
            branch_sample_type: 0,
            more_flags: 0,
            ids: Vec::new(),
        }
    }
}

/// A file in the making.
pub struct Writer {
    order: Order,
    events: Vec<EventSpec>,
    records: Vec<u8>,
}

impl Writer {
    pub fn new(order: Order) -> Writer {
        Writer::with_events(order, vec![EventSpec::default()])
    }

    pub fn with_events(order: Order, events: Vec<EventSpec>) -> Writer {
        Writer { order, events, records: Vec::new() }
    }

    pub fn u16(&self, value: u16) -> [u8; 2] {
        if self.order == Order::Big { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    pub fn u32(&self, value: u32) -> [u8; 4] {
        if self.order == Order::Big { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    pub fn u64(&self, value: u64) -> [u8; 8] {
        if self.order == Order::Big { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    pub fn words(&self, words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|&word| self.u64(word)).collect()
    }

    fn halves(&self, halves: &[u32]) -> Vec<u8> {
        halves.iter().flat_map(|&half| self.u32(half)).collect()
    }

    fn text(text: &str) -> Vec<u8> {
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize((bytes.len() + 1).next_multiple_of(8), 0);
        bytes
    }

    pub fn record(&mut self, kind: u32, misc: u16, body: &[u8]) {
        let header = [self.u32(kind).to_vec(), self.u16(misc).to_vec(), self.u16(body.len() as u16 + 8).to_vec()];
        self.records.extend(header.concat());
        self.records.extend(body);
    }

    /// What stands behind all records but samples: thread, time, processor.
    fn trailer(&self, pid: u32, tid: u32, time: u64) -> Vec<u8> {
        [self.halves(&[pid, tid]), self.words(&[time]), self.halves(&[0, 0])].concat()
    }

    pub fn comm(&mut self, pid: u32, tid: u32, name: &str, misc: u16, time: u64) {
        let body = [self.halves(&[pid, tid]), Self::text(name), self.trailer(pid, tid, time)].concat();
        self.record(3, misc, &body);
    }

    /// A mapping of start, length and offset in the file.
    pub fn mmap(&mut self, pid: u32, place: [u64; 3], path: &str, inode: u64, time: u64) {
        let mut body = self.halves(&[pid, pid]);
        body.extend(self.words(&place));
        body.extend(self.halves(&[8, 1]));
        body.extend(self.words(&[inode, 1]));
        body.extend(self.halves(&[5, 2]));
        body.extend([Self::text(path), self.trailer(pid, pid, time)].concat());
        self.record(10, IN_USER, &body);
    }

    pub fn map_kernel(&mut self, start: u64, length: u64, name: &str) {
        let mut body = self.halves(&[u32::MAX, 0]);
        body.extend(self.words(&[start, length, start]));
        body.extend([Self::text(name), self.trailer(0, 0, 0)].concat());
        self.record(1, IN_KERNEL, &body);
    }

    pub fn fork(&mut self, child: (u32, u32), parent: (u32, u32), misc: u16, time: u64) {
        let mut body = self.halves(&[child.0, parent.0, child.1, parent.1]);
        body.extend([self.words(&[time]), self.trailer(parent.0, parent.1, time)].concat());
        self.record(7, misc, &body);
    }

    /// A thread leaves the processor, or comes back.
    pub fn switch(&mut self, task: (u32, u32), out: bool, time: u64) {
        let body = self.trailer(task.0, task.1, time);
        self.record(14, if out { 1 << 13 } else { 0 }, &body);
    }

    pub fn round(&mut self) {
        self.record(68, 0, &[]);
    }

    /// A sample of [`SAMPLE_TYPE`], on processor `time % 4`; `more` follows the chain.
    pub fn sample_with(&mut self, misc: u16, task: (u32, u32), time: u64, weight: u64, chain: &[u64], more: &[u8]) {
        let ip = chain.iter().copied().find(|&word| word < -4095i64 as u64).unwrap_or(0);
        let mut body = self.words(&[ip]);
        body.extend(self.halves(&[task.0, task.1]));
        body.extend(self.words(&[time]));
        body.extend(self.halves(&[(time % 4) as u32, 0]));
        body.extend(self.words(&[weight, chain.len() as u64]));
        body.extend(self.words(chain));
        body.extend(more);
        self.record(9, misc, &body);
    }

    pub fn sample(&mut self, task: (u32, u32), time: u64, weight: u64, chain: &[u64]) {
        self.sample_with(IN_USER, task, time, weight, chain, &[]);
    }

    fn attribute(&self, event: &EventSpec) -> Vec<u8> {
        let flags = MMAP | COMM | TASK | SAMPLE_ID_ALL | EXCLUDE_GUEST | MMAP2 | COMM_EXEC | event.more_flags;
        let flags = match self.order {
            Order::Little => flags.to_le_bytes(),
            Order::Big => flags.to_le_bytes().map(u8::reverse_bits),
        };
        let mut bytes = self.halves(&[event.kind, 128]);
        bytes.extend(self.words(&[event.config, event.period, event.sample_type, event.read_format]));
        bytes.extend(flags);
        bytes.extend(self.words(&[0, 0, 0, event.branch_sample_type]));
        bytes.resize(128, 0);
        bytes
    }

    /// The file, with the given feature sections.
    pub fn file(&self, features: &[(u32, Vec<u8>)]) -> Vec<u8> {
        let (header, entry) = (104, 128 + 16);
        let ids: Vec<u64> = self.events.iter().flat_map(|event| event.ids.clone()).collect();
        let ids_start = header + entry * self.events.len() as u64;
        let data = ids_start + 8 * ids.len() as u64;
        let mut bits = [0u64; 4];
        features.iter().for_each(|(number, _)| bits[*number as usize / 64] |= 1 << (number % 64));
        let mut bytes = match self.order {
            Order::Little => b"PERFILE2".to_vec(),
            Order::Big => b"2ELIFREP".to_vec(),
        };
        let attributes = (header, entry * self.events.len() as u64);
        bytes.extend(self.words(&[header, entry, attributes.0, attributes.1, data, self.records.len() as u64, 0, 0]));
        bytes.extend(self.words(&bits));
        let mut next_id = ids_start;
        for event in &self.events {
            bytes.extend(self.attribute(event));
            bytes.extend(self.words(&[next_id, 8 * event.ids.len() as u64]));
            next_id += 8 * event.ids.len() as u64;
        }
        bytes.extend(self.words(&ids));
        bytes.extend(&self.records);
        let mut offset = bytes.len() as u64 + 16 * features.len() as u64;
        for (_, section) in features {
            bytes.extend(self.words(&[offset, section.len() as u64]));
            offset += section.len() as u64;
        }
        bytes.extend(features.iter().flat_map(|(_, section)| section));
        bytes
    }

    /// What `perf record -o -` would write: attributes as records in front.
    pub fn pipe(&self) -> Vec<u8> {
        let mut head = Writer::with_events(self.order, Vec::new());
        for event in &self.events {
            let body = [self.attribute(event), self.words(&event.ids)].concat();
            head.record(64, 0, &body);
        }
        let magic: &[u8] = if self.order == Order::Big { b"2ELIFREP" } else { b"PERFILE2" };
        [magic, &self.u64(16), &head.records, &self.records].concat()
    }
}

/// A build-id section that gives one path its id.
pub fn build_id_section(writer: &Writer, path: &str, id: [u8; 20]) -> Vec<u8> {
    let name = Writer::text(path);
    let size = 8 + 4 + 24 + name.len() as u16;
    let misc = 2;
    let header = [writer.u32(0).to_vec(), writer.u16(misc).to_vec(), writer.u16(size).to_vec()].concat();
    [header, writer.u32(u32::MAX).to_vec(), id.to_vec(), vec![0; 4], name].concat()
}
