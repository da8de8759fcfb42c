//! The part of the tables that holds statistics of Arm SPE.

use super::codec::{Decoded, Decoder, Encoder};
use super::tables::{codes, decode_thread};
use heatline_profile::{Distribution, Profile, Ratio, SpeOrigin, SpeRecording, SpeRow, SpeStats, SpeTable, StackId};

codes!(origin_code, origin: SpeOrigin { Spe = 0, Memory = 1, });

pub(super) fn encode_spe(out: &mut Encoder, table: &SpeTable) {
    let SpeTable { origin, rows, recording } = table;
    out.number(origin_code(*origin));
    out.list(rows, |out, row| {
        out.number(row.stack.0.into());
        out.number(row.thread.map_or(0, |thread| u64::from(thread.0) + 1));
        encode_stats(out, &row.stats);
    });
    let SpeRecording {
        settings,
        filtered,
        interval,
        buffers,
        truncated,
        partial,
        collision,
        bytes,
        records,
        dropped_records,
        bad_bytes,
        largest_latency,
        advice,
    } = recording;
    out.list(settings, |out, text| out.text(text));
    out.list(advice, |out, text| out.text(text));
    out.number((*filtered).into());
    out.optional(*interval, Encoder::number);
    let counts = [buffers, truncated, partial, collision, bytes, records, dropped_records, bad_bytes];
    counts.into_iter().for_each(|&count| out.number(count));
    out.number((*largest_latency).into());
}

pub(super) fn decode_spe(input: &mut Decoder<'_>, profile: &Profile) -> Decoded<SpeTable> {
    let Some(origin) = origin(input.number()?) else { return input.damage("an origin of statistics") };
    let rows = input.list(|input| {
        let stack = StackId(input.below(profile.stacks.len(), "the number of a stack")?);
        Ok(SpeRow { stack, thread: decode_thread(input, profile)?, stats: decode_stats(input)? })
    })?;
    let recording = SpeRecording {
        settings: input.list(Decoder::text)?,
        advice: input.list(Decoder::text)?,
        filtered: input.flag()?,
        interval: input.optional(Decoder::number)?,
        buffers: input.number()?,
        truncated: input.number()?,
        partial: input.number()?,
        collision: input.number()?,
        bytes: input.number()?,
        records: input.number()?,
        dropped_records: input.number()?,
        bad_bytes: input.number()?,
        largest_latency: input.narrow("a latency")?,
    };
    Ok(SpeTable { origin, rows, recording })
}

fn encode_stats(out: &mut Encoder, stats: &SpeStats) {
    // Named one by one, so that a new one cannot be forgotten.
    let SpeStats {
        records,
        total_latency,
        issue_latency,
        translation_latency,
        execution_latency,
        l1d_miss,
        l2d_miss,
        llc_miss,
        tlb_miss,
        mispredicted,
        not_taken,
        misaligned,
        remote,
        sources,
        snoops,
        operations,
    } = stats;
    out.number(*records);
    for latency in [total_latency, issue_latency, translation_latency, execution_latency] {
        let mut last = 0;
        out.list(latency.counts(), |out, &(value, records)| {
            out.number(u64::from(value - last));
            out.number(records.into());
            last = value;
        });
    }
    for ratio in [l1d_miss, l2d_miss, llc_miss, tlb_miss, mispredicted, not_taken, misaligned, remote] {
        out.number(ratio.count);
        out.number(ratio.of);
    }
    sources.iter().chain(snoops).chain(operations).for_each(|&count| out.number(count));
}

fn decode_stats(input: &mut Decoder<'_>) -> Decoded<SpeStats> {
    let mut stats = SpeStats {
        records: input.number()?,
        total_latency: decode_distribution(input)?,
        issue_latency: decode_distribution(input)?,
        translation_latency: decode_distribution(input)?,
        execution_latency: decode_distribution(input)?,
        l1d_miss: decode_ratio(input)?,
        l2d_miss: decode_ratio(input)?,
        llc_miss: decode_ratio(input)?,
        tlb_miss: decode_ratio(input)?,
        mispredicted: decode_ratio(input)?,
        not_taken: decode_ratio(input)?,
        misaligned: decode_ratio(input)?,
        remote: decode_ratio(input)?,
        ..SpeStats::default()
    };
    for count in stats.sources.iter_mut().chain(&mut stats.snoops).chain(&mut stats.operations) {
        *count = input.number()?;
    }
    Ok(stats)
}

fn decode_distribution(input: &mut Decoder<'_>) -> Decoded<Distribution> {
    let mut last = None;
    let counts = input.list(|input| {
        let step: u16 = input.narrow("a latency")?;
        let value = match last {
            None => Some(step),
            Some(last) if step > 0 => step.checked_add(last),
            Some(_) => None,
        };
        let Some(value) = value else { return input.damage("ascending latencies") };
        last = Some(value);
        let records: u32 = input.narrow("a count of records")?;
        if records == 0 { input.damage("a latency that was seen") } else { Ok((value, records)) }
    })?;
    Ok(Distribution::from_ascending(counts))
}

fn decode_ratio(input: &mut Decoder<'_>) -> Decoded<Ratio> {
    Ok(Ratio { count: input.number()?, of: input.number()? })
}
