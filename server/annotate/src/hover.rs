//! The hover of a line: all that the profile says about it, in markdown.

use crate::calls::{Call, CallBasis, Party};
use crate::model::{FileId, FunctionId};
use crate::placement::Placement;
use crate::statistics::wilson;
use crate::table::Cost;
use crate::text::{amount, count, delta_sentence, placement_sentence, sampled, samples, shown_share, skid, taken};
use crate::times::Times;
use crate::view::Annotations;
use heatline_profile::{Identity, ModuleId};
use std::num::NonZeroU32;

/// How many callers and callees are listed.
const MOST_CALLS: usize = 5;

impl Annotations {
    /// The hover of a line of the profiled text, or `None` where it has no cost.
    pub fn hover(&self, file: FileId, line: NonZeroU32, placement: Placement) -> Option<String> {
        let view = self.file(file)?.line(line)?;
        let mut parts = vec![self.costs(file, line)];
        parts.extend(self.interval(&view.exclusive));
        parts.extend(view.times.as_ref().map(Times::markdown));
        parts.extend(view.delta.as_ref().map(delta_sentence));
        parts.extend(self.spe_of_line(file, line).map(|stats| self.table().spe_hover(&stats)));
        let functions = self.functions_of_line(file, line);
        parts.extend(self.function_lines(&functions));
        let calls = self.calls_of_lines(file, line..=line);
        parts.extend(self.call_list("called from", &calls.callers));
        parts.extend(self.call_list("calls", &calls.callees));
        parts.extend(self.module_lines(&functions, file, line));
        parts.push(placement_sentence(placement).into());
        Some(parts.join("\n\n"))
    }

    fn costs(&self, file: FileId, line: NonZeroU32) -> String {
        let inclusive = self.table().has_inclusive();
        let mut text = String::from("| metric | exclusive |");
        text += if inclusive { " inclusive |\n|---|---|---|" } else { "\n|---|---|" };
        for (table, costs) in self.events_of_line(file, line) {
            let profile = table.model().profile();
            let id = table.selection().metric.event;
            let unit = profile.event(id).unit;
            let cell = |cost: &Cost| {
                if cost.samples == 0 {
                    return " |".to_owned();
                }
                let parts =
                    [Some(format!("**{}**", shown_share(cost))), sampled(cost), Some(amount(cost.weight, unit))];
                format!(" {} |", parts.into_iter().flatten().collect::<Vec<_>>().join(" · "))
            };
            let total = table.total();
            let total = if table.is_measured() { amount(total.weight, unit) } else { samples(total.samples) };
            text += &format!("\n| `{}` ({total}) |{}", profile.metric_id(id), cell(&costs.exclusive));
            if inclusive {
                text += &costs.inclusive.as_ref().map_or_else(|| " |".to_owned(), cell);
            }
        }
        text
    }

    fn interval(&self, exclusive: &Cost) -> Option<String> {
        let table = self.table();
        if table.is_measured() {
            return None;
        }
        let event = table.model().profile().event(table.selection().metric.event);
        let (low, high) = wilson(exclusive.samples as f64, table.total().samples as f64)?;
        let mut text = String::new();
        if exclusive.samples > 0 {
            text = format!("exclusive share, 95 % interval: {:.1} % to {:.1} %", 100.0 * low, 100.0 * high);
        }
        if let Some(note) = skid(event) {
            text += if text.is_empty() { "" } else { "  \n" };
            text += note;
        }
        (!text.is_empty()).then_some(text)
    }

    fn function_lines(&self, functions: &[FunctionId]) -> Option<String> {
        let model = self.table().model();
        let mut lines: Vec<String> = Vec::new();
        for &id in functions.iter().take(MOST_CALLS) {
            let function = model.function(id);
            let mut text = format!("in `{}`", code(&function.name));
            let hosts = self.inlined_into(id);
            if !hosts.is_empty() {
                let names: Vec<String> =
                    hosts.iter().take(3).map(|&host| format!("`{}`", code(&model.function(host).name))).collect();
                text += &format!(", inlined into {}", names.join(", "));
                if hosts.len() > 3 {
                    text += &format!(" and {} more", hosts.len() - 3);
                }
            }
            lines.push(text);
        }
        (!lines.is_empty()).then(|| lines.join("  \n"))
    }

    /// The functions that hold inlined copies of a function, one level out.
    fn inlined_into(&self, wanted: FunctionId) -> Vec<FunctionId> {
        let model = self.table().model();
        let mut hosts: Vec<FunctionId> = (0..model.locations())
            .flat_map(|location| model.frames_at(location).windows(2))
            .filter(|pair| pair[0].inlined && pair[0].function == Some(wanted))
            .filter_map(|pair| pair[1].function)
            .collect();
        hosts.sort_unstable();
        hosts.dedup();
        hosts
    }

    fn call_list(&self, title: &str, calls: &[Call]) -> Option<String> {
        if calls.is_empty() {
            return None;
        }
        let branches = self.table().call_basis() == Some(CallBasis::Branches);
        let mut text = format!("**{title}**{}", if branches { " (recorded branches, no share of time)" } else { "" });
        for call in calls.iter().take(MOST_CALLS) {
            let cost = match branches {
                true => taken(call.cost.samples),
                false => {
                    let unit = self.table().model().profile().event(self.table().selection().metric.event).unit;
                    let basis = sampled(&call.cost).unwrap_or_else(|| amount(call.cost.weight, unit));
                    format!("{} · {basis}", shown_share(&call.cost))
                }
            };
            text += &format!("\n- `{}` {cost}", code(&self.party_name(call.party)));
        }
        if calls.len() > MOST_CALLS {
            text += &format!("\n- and {} more", count((calls.len() - MOST_CALLS) as u64));
        }
        Some(text)
    }

    /// The name of a party of a call, for people.
    pub fn party_name(&self, party: Party) -> String {
        let model = self.table().model();
        match party {
            Party::Function(id) => model.function(id).name.to_string(),
            Party::Unnamed(module) => {
                format!("[{}]", model.profile().module(module).base_name().trim_matches(['[', ']']))
            }
        }
    }

    fn module_lines(&self, functions: &[FunctionId], file: FileId, line: NonZeroU32) -> Option<String> {
        let model = self.table().model();
        let mut modules: Vec<ModuleId> = self.modules_of_line(file, line);
        if modules.is_empty() {
            modules = functions.iter().map(|&id| model.function(id).module).collect();
        }
        let text: Vec<String> = modules
            .iter()
            .map(|&id| {
                let module = model.profile().module(id);
                let identity = match &module.identity {
                    Some(Identity::BuildId(id)) => format!(", build id `{id}`"),
                    Some(identity) => format!(", identity `{identity}`"),
                    None => ", no build id recorded".into(),
                };
                format!("module `{}`{identity}", code(module.base_name()))
            })
            .collect();
        (!text.is_empty()).then(|| text.join("  \n"))
    }
}

/// Text that may stand between backticks.
fn code(text: &str) -> String {
    text.replace('`', "'")
}
