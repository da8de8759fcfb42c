//! What of the cost reached no line, module by module, in words that say what can be done.

use crate::model::Model;
use crate::table::{Coverage, ModuleCoverage};
use crate::text::counted;
use heatline_profile::{AddressSpace, Module, ModuleKind, Percent, Weight};
use heatline_symbols::Reason;

/// Gaps of a smaller share of the cost are not spoken of.
const LEAST_SHARE: f64 = 0.05;

/// So many modules are spoken of.
const MOST_MODULES: usize = 3;

/// What helps where code has no lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Remedy {
    /// The binary was built without debug information.
    DebugInfo,
    /// Parts of the binary were.
    DebugInfoOfParts,
    /// The file with the debug information is elsewhere.
    DebugFile,
    /// What is here is of another build.
    RecordedBuild,
    /// The reason says what helps, or that nothing does.
    AsSaid,
}

impl Remedy {
    /// What helps against a reason; `None` of code that a compiler gives no line.
    pub(crate) fn against(reason: &Reason) -> Option<Self> {
        match reason {
            Reason::NoDebugInfo => Some(Remedy::DebugInfo),
            Reason::NotCovered => Some(Remedy::DebugInfoOfParts),
            Reason::MissingDebugFile(_) | Reason::UnusableDebugFile { .. } => Some(Remedy::DebugFile),
            Reason::OtherBuild { .. } => Some(Remedy::RecordedBuild),
            Reason::Recorded(_) => Some(Remedy::AsSaid),
            _ => None,
        }
    }

    fn advice(self, module: &Module) -> Option<&'static str> {
        let is_pe = module.space == AddressSpace::Rva;
        Some(match self {
            Remedy::AsSaid => return None,
            Remedy::DebugInfo | Remedy::DebugFile if is_pe => {
                "link with /DEBUG, or name the folder of its PDB with --symbol-path"
            }
            Remedy::RecordedBuild if is_pe => {
                "record again, or name the folder of the recorded build with --symbol-path"
            }
            Remedy::RecordedBuild => "record again, or name the folder of the recorded build with --debug-dir",
            Remedy::DebugInfo | Remedy::DebugFile if is_of_system(&module.path) => {
                "install its package of debug symbols, or name their folder with --debug-dir"
            }
            Remedy::DebugInfo => "compile with -g, or name the folder of its debug file with --debug-dir",
            Remedy::DebugInfoOfParts => "compile all of it with -g",
            Remedy::DebugFile => "name the folder of its debug file with --debug-dir",
        })
    }
}

/// Whether a binary most likely came with the system.
fn is_of_system(path: &str) -> bool {
    ["/lib", "/usr/lib", "/bin/", "/usr/bin/", "/sbin/", "/usr/sbin/"].iter().any(|folder| path.starts_with(folder))
}

/// Where a considerable share of the cost reached no line, why, and what helps: a sentence for each of the modules with
/// most of it, and how many more there are. `rest` says where those are told.
pub fn gaps(model: &Model, coverage: &Coverage, rest: &str) -> Vec<String> {
    let whole: Weight = coverage.by_module.iter().map(|module| module.weight).sum();
    let mut gaps: Vec<(f64, &ModuleCoverage)> = coverage
        .by_module
        .iter()
        .filter(|module| module.reason.is_some() && module.remedy.is_some())
        .map(|of| (without_line(model, of) * Percent::of(of.weight, whole).map_or(0.0, Percent::value) / 100.0, of))
        .filter(|(share, _)| *share >= LEAST_SHARE)
        .collect();
    gaps.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut lines: Vec<String> =
        gaps.iter().take(MOST_MODULES).map(|(share, of)| sentence(model, *share, of)).collect();
    if let Some(more) = gaps.len().checked_sub(MOST_MODULES).filter(|more| *more > 0) {
        lines.push(format!("… and of {}{rest}", counted(more as u64, "more module")));
    }
    lines
}

/// The share of a module's cost that lacks a line which it could have. Lines of the kernel are nowhere to be had.
fn without_line(model: &Model, of: &ModuleCoverage) -> f64 {
    match model.profile().module(of.module).kind {
        ModuleKind::Kernel | ModuleKind::KernelModule => of.none,
        _ => of.symbol + of.none,
    }
}

fn sentence(model: &Model, share: f64, of: &ModuleCoverage) -> String {
    let module = model.profile().module(of.module);
    let share = heatline_profile::round(100.0 * share);
    let mut text = format!("{share} % is in {} without lines", module.base_name());
    if let Some(reason) = &of.reason {
        text += &format!(": {reason}");
    }
    if let Some(advice) = of.remedy.and_then(|remedy| remedy.advice(module)) {
        text += &format!("; {advice}");
    }
    text
}
