//! What the writers of stacks have in common: which samples, and the frames of each address.

use crate::cli::options::ProfileArgs;
use crate::cli::selected::no_such_thread;
use crate::cli::session::no_events;
use anyhow::{Context, bail};
use heatline_annotate::Model;
use heatline_profile::{
    EventId, ModuleId, Profile, RecordedFrame, RecordedFunction, RecordedFunctionId, StackNode, Symbolization,
};
use std::path::Path;
use std::sync::Arc;

/// A profile with the frames of its addresses.
pub struct Frames {
    /// The profile, with the samples that are to be written.
    pub profile: Arc<Profile>,
    /// Its frames.
    pub symbolization: Symbolization,
}

/// What a frame is an activation of: a function, or code of a module that has no name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    Function(ModuleId, RecordedFunctionId),
    Unnamed(ModuleId),
}

impl Frames {
    /// The samples of the threads that the options choose, and their frames.
    pub fn of(model: &Model, args: &ProfileArgs) -> anyhow::Result<Self> {
        let filter = args.filter();
        let mut profile = Arc::clone(model.profile());
        if !filter.comms.is_empty() || !filter.pids.is_empty() || !filter.tids.is_empty() {
            let threads = profile.threads.clone();
            let chosen =
                |row: &heatline_profile::SampleRow| filter.selects_thread(row.thread.map(|id| &threads[id.0 as usize]));
            Arc::make_mut(&mut profile).rows.retain(chosen);
            if profile.rows.is_empty() {
                bail!("{}", no_such_thread(&args.reading, model.profile()));
            }
        }
        let mut symbolization = model.symbolization();
        if args.reading.no_inline {
            symbolization = symbolization.without_inlined();
        }
        Ok(Frames { profile, symbolization })
    }

    /// How many frames [`Self::at`] gives.
    pub fn count(&self, node: &StackNode) -> usize {
        let module = self.symbolization.module(node.module);
        let chain = module.and_then(|module| Some(module.chain(module.find(node.address.lookup())?)));
        chain.map_or(1, |chain| chain.len().max(1))
    }

    /// The frames of a stack's node, outermost first, each with the place it is in.
    pub fn at(&self, node: &StackNode) -> Vec<(Place, Option<RecordedFrame>)> {
        let module = self.symbolization.module(node.module);
        let chain = module.and_then(|module| Some(module.chain(module.find(node.address.lookup())?)));
        let chain = chain.unwrap_or_default();
        if chain.is_empty() {
            return vec![(Place::Unnamed(node.module), None)];
        }
        let place = |frame: &RecordedFrame| match frame.function {
            Some(function) => Place::Function(node.module, function),
            None => Place::Unnamed(node.module),
        };
        chain.iter().rev().map(|frame| (place(frame), Some(*frame))).collect()
    }

    /// The function of a place.
    pub fn function(&self, place: Place) -> Option<&RecordedFunction> {
        match place {
            Place::Function(_, id) => self.symbolization.functions.get(id.0 as usize),
            Place::Unnamed(_) => None,
        }
    }

    /// The name of a place for people; code without a name is that of its module, in brackets.
    pub fn name(&self, place: Place) -> String {
        match (place, self.function(place)) {
            (_, Some(function)) => function.name.to_string(),
            (Place::Function(module, _) | Place::Unnamed(module), None) => {
                format!("[{}]", self.profile.module(module).base_name().trim_matches(['[', ']']))
            }
        }
    }

    /// The file that a place is declared in.
    pub fn file(&self, place: Place) -> Option<&str> {
        let file = self.function(place)?.file?;
        Some(&self.symbolization.files.get(file.0 as usize)?.path)
    }

    /// The events that have samples, the one that is shown first in front.
    pub fn events(&self) -> Vec<EventId> {
        let totals = (0..).map(EventId).zip(self.profile.totals());
        let mut events: Vec<EventId> = totals.filter(|(_, total)| total.samples > 0).map(|(id, _)| id).collect();
        let first = self.profile.default_event();
        events.sort_by_key(|&event| Some(event) != first);
        events
    }
}

/// The event that the options choose, or the first.
pub fn event(frames: &Frames, args: &ProfileArgs, path: &Path) -> anyhow::Result<EventId> {
    let profile = &frames.profile;
    match args.reading.metric.as_ref().or(args.event_name()) {
        None => profile.default_event().with_context(|| no_events(path)),
        Some(name) => profile.find_event(name).with_context(|| {
            let known: Vec<&str> = frames.events().iter().map(|&event| profile.metric_id(event)).collect();
            format!("no event {name}; this profile has: {}", known.join(", "))
        }),
    }
}
