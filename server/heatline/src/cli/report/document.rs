//! The JSON document of `heatline report`.

use super::ReportRow;
use super::spe::SpeJson;
use super::times::{CallTimeJson, TimedJson};
use crate::cli::output::{CostJson, ProblemJson, problems_json};
use crate::cli::session::Session;
use heatline_annotate::text;
use heatline_annotate::{Call, Coverage, ModuleCoverage, Party, cut_stacks};
use heatline_profile::{EventId, ProfileKind, SpeOrigin};
use heatline_readers::spt;
use serde::Serialize;

#[derive(Serialize)]
pub struct Document {
    version: u32,
    profile: ProfileJson,
    metrics: Vec<MetricJson>,
    metric: String,
    coverage: CoverageJson,
    /// What callers and callees are known from, where they are shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    call_basis: Option<&'static str>,
    rows: Vec<RowJson>,
    problems: Vec<ProblemJson>,
}

#[derive(Serialize)]
struct ProfileJson {
    path: String,
    kind: &'static str,
    samples: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ns: Option<u64>,
    /// What SPDConvert is to be told of an SPT file.
    #[serde(skip_serializing_if = "Option::is_none")]
    convert_mode: Option<String>,
    /// How SPE records were chosen, in words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    settings: Vec<String>,
}

#[derive(Serialize)]
struct MetricJson {
    id: String,
    unit: &'static str,
    samples: u64,
    total: u64,
}

#[derive(Serialize)]
struct CoverageJson {
    line: f64,
    symbol: f64,
    none: f64,
    by_module: Vec<ModuleCoverageJson>,
}

#[derive(Serialize)]
struct ModuleCoverageJson {
    module: String,
    line: f64,
    symbol: f64,
    none: f64,
    weight: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    identity: Option<String>,
    /// Where its binary was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    binary: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    looked: Vec<String>,
}

/// A row; what does not apply to its kind is absent.
#[derive(Serialize)]
pub struct RowJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tid: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comm: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inlined: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exclusive: Option<CostJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inclusive: Option<CostJson>,
    /// Where the file is, if it was renamed since it was built.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_now: Option<String>,
    /// Where the line is in the source as it is now, if it is not where it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line_now: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spe: Option<SpeJson>,
    /// The same of memory accesses.
    #[serde(skip_serializing_if = "Option::is_none")]
    mem: Option<SpeJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    elapsed: Option<TimedJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    application: Option<TimedJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    calls: Option<u64>,
    /// How long those calls took.
    #[serde(skip_serializing_if = "Option::is_none")]
    call_time: Option<CallTimeJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    callers: Option<Vec<CallJson>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    callees: Option<Vec<CallJson>>,
}

/// The other end of a call.
#[derive(Serialize)]
struct CallJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<String>,
    module: String,
    cost: CostJson,
}

fn calls(session: &Session, calls: &[Call]) -> Vec<CallJson> {
    let model = &session.loaded.model;
    let json = |call: &Call| {
        let (function, module) = match call.party {
            Party::Function(id) => (Some(model.function(id).name.to_string()), model.function(id).module),
            Party::Unnamed(module) => (None, module),
        };
        CallJson { function, module: model.profile().module(module).base_name().to_owned(), cost: call.cost.into() }
    };
    calls.iter().map(json).collect()
}

pub fn document(session: &Session, rows: &[ReportRow]) -> Document {
    let profile = session.loaded.model.profile();
    let totals = profile.totals();
    let metrics = (0..).map(EventId).zip(&profile.events).zip(&totals);
    Document {
        version: 1,
        profile: ProfileJson {
            path: session.loaded.path.display().to_string(),
            kind: profile.kind.name(),
            samples: profile.samples(),
            duration_ns: profile.recording.duration_ns,
            convert_mode: (profile.kind == ProfileKind::Spt).then(|| spt::ConvertMode::of(profile).to_string()),
            settings: profile.spe.as_ref().map(|table| table.recording.settings.clone()).unwrap_or_default(),
        },
        metrics: metrics
            .map(|((id, event), total)| MetricJson {
                id: profile.metric_id(id).into(),
                unit: event.unit.name(),
                samples: total.samples,
                total: total.weight.0,
            })
            .collect(),
        metric: session.table.selection().metric.id(profile),
        coverage: coverage(session, &session.table.coverage()),
        call_basis: rows
            .iter()
            .find(|row| row.calls.is_some())
            .and_then(|_| session.table.call_basis())
            .map(text::basis),
        rows: rows.iter().map(|of| row(session, of)).collect(),
        problems: problems(session),
    }
}

/// What went wrong, and what the recording cannot tell.
fn problems(session: &Session) -> Vec<ProblemJson> {
    let mut problems = session.loaded.problems.clone();
    if let Some(remark) = cut_stacks(&session.table) {
        problems.add("cut-stacks", 1, None, remark);
    }
    problems_json(&problems)
}

fn coverage(session: &Session, coverage: &Coverage) -> CoverageJson {
    let module = |of: &ModuleCoverage| {
        let module = session.loaded.model.profile().module(of.module);
        let looked = &session.loaded.looked[of.module.0 as usize];
        let incomplete = of.reason.is_some();
        ModuleCoverageJson {
            module: module.base_name().into(),
            line: of.line,
            symbol: of.symbol,
            none: of.none,
            weight: of.weight.0,
            reason: of.reason.clone(),
            identity: module.identity.as_ref().map(ToString::to_string),
            binary: session.loaded.binaries[of.module.0 as usize].as_ref().map(|path| path.display().to_string()),
            looked: if incomplete { looked.iter().map(|p| p.display().to_string()).collect() } else { Vec::new() },
        }
    };
    CoverageJson {
        line: coverage.line,
        symbol: coverage.symbol,
        none: coverage.none,
        by_module: coverage.by_module.iter().map(module).collect(),
    }
}

pub fn row(session: &Session, ReportRow { row, event, calls: edges, now }: &ReportRow) -> RowJson {
    let model = &session.loaded.model;
    let profile = model.profile();
    let thread = row.thread.map(|id| profile.thread(id));
    let origin = profile.spe.as_ref().map(|table| table.origin).unwrap_or_default();
    let times = row.times.as_deref();
    let stats = times.and_then(|times| times.calls);
    let exclusive = event.is_some() || row.thread.is_some() || session.table.has_exclusive();
    RowJson {
        event: event.map(|id| profile.metric_id(id).to_owned()),
        pid: thread.map(|thread| thread.pid),
        tid: thread.filter(|_| !row.is_process).map(|thread| thread.tid),
        comm: thread.map(|thread| thread.comm.clone()),
        module: row.module.map(|id| profile.module(id).base_name().to_owned()),
        function: row.function.map(|id| model.function(id).name.to_string()),
        file: row.file.map(|id| model.file(id).path.clone()),
        line: row.line.map(|line| line.get()),
        inlined: row.function.map(|_| row.inlined),
        exclusive: exclusive.then(|| row.exclusive.into()),
        inclusive: row.inclusive.map(CostJson::from),
        file_now: now.as_ref().and_then(|now| now.renamed.as_ref()).map(|path| path.display().to_string()),
        line_now: now.as_ref().and_then(|now| now.line).filter(|now| row.line.is_some_and(|line| line.get() != *now)),
        placement: now.as_ref().map(|now| now.placement.name()),
        spe: row.spe.as_deref().filter(|_| origin == SpeOrigin::Spe).map(SpeJson::from),
        mem: row.spe.as_deref().filter(|_| origin == SpeOrigin::Memory).map(SpeJson::from),
        elapsed: times.map(|times| times.elapsed.into()),
        application: times.and_then(|times| times.application).map(TimedJson::from),
        calls: stats.map(|stats| stats.calls),
        call_time: stats.as_ref().and_then(CallTimeJson::of),
        callers: edges.as_ref().map(|edges| calls(session, &edges.callers)),
        callees: edges.as_ref().map(|edges| calls(session, &edges.callees)),
    }
}
