//! Prints of call chains, made ahead of the thread that takes the records.

use super::blocks::{Record, payload_size};
use super::bytes::Order;
use super::chains::ChainPrint;
use super::layout::Layout;
use super::state::record_type;

/// The size of a record header.
const HEADER: usize = 8;

/// Finds the samples in a stream of records, however it is cut into blocks.
pub(crate) struct Scanner {
    /// Of all samples.
    layout: Layout,
    order: Order,
    /// The front of a record that ends in a later block.
    front: Vec<u8>,
    /// Bytes that follow a record and belong to none.
    payload: u64,
    /// Behind a size that cannot be there are no records.
    lost: bool,
}

impl Scanner {
    /// For records of this order whose samples all have this layout.
    pub fn new(layout: Layout, order: Order) -> Scanner {
        Scanner { layout, order, front: Vec::new(), payload: 0, lost: false }
    }

    /// Adds the prints of all samples that end in the next block, in front of which bytes of a payload were left out.
    pub fn scan(&mut self, left_out: u64, block: &[u8], prints: &mut Vec<ChainPrint>) {
        self.payload = self.payload.saturating_sub(left_out);
        let mut rest = block;
        while !self.lost && !rest.is_empty() {
            let payload = usize::try_from(self.payload).unwrap_or(usize::MAX).min(rest.len());
            self.payload -= payload as u64;
            rest = rest.get(payload..).unwrap_or(&[]);
            if !self.front.is_empty() {
                rest = self.finish_front(rest, prints);
                continue;
            }
            match Record::split(rest, 0, self.order) {
                Ok(Some((record, size))) => {
                    self.payload = self.see(&record, prints);
                    rest = rest.get(size..).unwrap_or(&[]);
                }
                Ok(None) => {
                    self.front.extend_from_slice(rest);
                    return;
                }
                Err(_) => self.lost = true,
            }
        }
    }

    /// Completes the record whose front is known, as far as there are bytes for it; gives those behind it.
    fn finish_front<'b>(&mut self, rest: &'b [u8], prints: &mut Vec<ChainPrint>) -> &'b [u8] {
        let mut rest = rest;
        for whole in [false, true] {
            let size = self.front.get(6..HEADER).and_then(|size| size.first_chunk()).map(|&size| self.order.u16(size));
            let wanted = if whole { usize::from(size.unwrap_or(0)) } else { HEADER };
            let (more, behind) = rest.split_at(wanted.saturating_sub(self.front.len()).min(rest.len()));
            self.front.extend_from_slice(more);
            rest = behind;
        }
        let front = std::mem::take(&mut self.front);
        match Record::split(&front, 0, self.order) {
            Ok(Some((record, _))) => self.payload = self.see(&record, prints),
            Ok(None) => self.front = front,
            Err(_) => self.lost = true,
        }
        rest
    }

    /// The print of a record that is a sample; says how many bytes follow the record.
    fn see(&self, record: &Record<'_>, prints: &mut Vec<ChainPrint>) -> u64 {
        if record.kind == record_type::SAMPLE {
            let chain = self.layout.chain(record.body, self.order).map_or(&[][..], |(chain, _)| chain);
            prints.push(ChainPrint::of(chain));
        }
        payload_size(record, self.order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf_data::attr::{Attr, sample_type};

    fn sample(chain: &[u64]) -> Vec<u8> {
        let words = [0x1000, chain.len() as u64].into_iter().chain(chain.iter().copied());
        record(record_type::SAMPLE, words.flat_map(u64::to_le_bytes).collect())
    }

    fn record(kind: u32, body: Vec<u8>) -> Vec<u8> {
        let size = (body.len() + HEADER) as u16;
        [&kind.to_le_bytes()[..], &[2, 0], &size.to_le_bytes(), &body].concat()
    }

    #[test]
    fn every_cut_into_blocks_gives_the_same_prints() {
        let chains: [&[u64]; 3] = [&[1, 2, 3], &[], &[4, 5, 6, 7, 8]];
        let trace = record(record_type::AUXTRACE, 11u64.to_le_bytes().to_vec());
        let stream = [
            &sample(chains[0])[..],
            &trace,
            &[0xff; 11],
            &sample(chains[1]),
            &record(3, vec![0; 8]),
            &sample(chains[2]),
        ];
        let stream = stream.concat();
        let expected = chains.map(|chain| {
            let bytes: Vec<u8> = chain.iter().flat_map(|word| word.to_le_bytes()).collect();
            ChainPrint::of(&bytes)
        });
        let mut attr = Attr::parse(&[0; 64], Order::Little).unwrap();
        attr.sample_type = sample_type::IP | sample_type::CALLCHAIN;
        for size in 1..=stream.len() {
            let mut scanner = Scanner::new(Layout::new(&attr), Order::Little);
            let mut prints = Vec::new();
            stream.chunks(size).for_each(|block| scanner.scan(0, block, &mut prints));
            assert_eq!(prints, expected, "blocks of {size} bytes");
        }
    }
}
