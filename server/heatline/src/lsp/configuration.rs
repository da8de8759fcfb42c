//! The settings in force: from the file at the workspace root and from the client.

use super::state::Shared;
use crate::settings::{self, Settings};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tower_lsp::ls_types::{ConfigurationItem, MessageType};

/// The section that is ours.
const SECTION: &str = "heatline";

/// How long the client may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Where settings come from.
pub struct Configuration {
    shared: Arc<Shared>,
    /// What the client last said, by asking or by itself.
    of_client: Value,
    /// It has sent all settings since the beginning; what it said then does not hold any more.
    is_sent: bool,
    /// What could not be used was told already.
    told: Vec<String>,
}

impl Configuration {
    /// Nothing is known yet but what the client said in the beginning.
    pub fn new(shared: Arc<Shared>) -> Self {
        Configuration { shared, of_client: Value::Null, is_sent: false, told: Vec::new() }
    }

    /// Reads all layers again; `sent` is what came with the client's notification, if anything.
    pub async fn read(&mut self, sent: &Value) -> Arc<Settings> {
        self.ask(sent).await;
        let (root, options) = {
            let state = self.shared.lock();
            let options = if self.is_sent { Value::Null } else { state.options.clone() };
            (state.roots.first().cloned(), options)
        };
        let mut complaints = Vec::new();
        let file = match root.as_deref().map(settings::read_file) {
            Some(Ok(file)) => file,
            Some(Err(error)) => {
                complaints.push(error);
                None
            }
            None => None,
        };
        let mut settings = Settings::default();
        let layers = [
            (file.unwrap_or_default(), settings::FILE_NAME),
            (options, "settings"),
            (self.of_client.clone(), "settings"),
        ];
        for (layer, name) in layers {
            complaints.extend(settings.apply(&layer).into_iter().map(|complaint| format!("{name}: {complaint}")));
        }
        complaints.dedup();
        self.tell(complaints).await;
        Arc::new(settings)
    }

    /// Takes what the client sent, or better what it answers when asked.
    async fn ask(&mut self, sent: &Value) {
        if let Some(sent) = sent.get(SECTION).filter(|sent| sent.is_object()) {
            self.of_client = sent.clone();
            self.is_sent = true;
        }
        if !self.shared.lock().abilities.configuration {
            return;
        }
        let item = ConfigurationItem { scope_uri: None, section: Some(SECTION.into()) };
        let asked = tokio::time::timeout(PATIENCE, self.shared.client.configuration(vec![item])).await;
        if let Ok(Ok(answers)) = asked
            && let Some(answer) = answers.into_iter().next().filter(Value::is_object)
        {
            self.of_client = answer;
        }
    }

    async fn tell(&mut self, complaints: Vec<String>) {
        for complaint in complaints.iter().filter(|complaint| !self.told.contains(complaint)) {
            self.shared.client.log_message(MessageType::WARNING, format!("Heatline: {complaint}")).await;
        }
        self.told = complaints;
    }
}
