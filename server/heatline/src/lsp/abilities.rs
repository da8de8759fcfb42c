//! What a client can do, as far as the server asks.

use super::text::Encoding;
use tower_lsp::ls_types::{ClientCapabilities, PositionEncodingKind};

/// What a client can do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Abilities {
    /// It shows progress that the server begins.
    pub progress: bool,
    /// It can be asked for settings.
    pub configuration: bool,
    /// It can be told that settings interest us.
    pub register_configuration: bool,
    /// It watches files if told which.
    pub watch: bool,
    /// It knows patterns relative to a folder.
    pub relative_patterns: bool,
    /// It asks for hints anew when told.
    pub refresh_hints: bool,
    /// It asks for lenses anew when told.
    pub refresh_lenses: bool,
    /// It asks for differences by itself and shows them in colours, so that hints are to be without.
    pub paints_deltas: bool,
}

impl Abilities {
    /// What the client says of itself.
    pub fn of(client: &ClientCapabilities) -> Self {
        let workspace = client.workspace.clone().unwrap_or_default();
        let watched = workspace.did_change_watched_files.unwrap_or_default();
        let configuration = workspace.did_change_configuration.unwrap_or_default();
        let window = client.window.clone().unwrap_or_default();
        Abilities {
            progress: window.work_done_progress == Some(true),
            configuration: workspace.configuration == Some(true),
            register_configuration: configuration.dynamic_registration == Some(true),
            watch: watched.dynamic_registration == Some(true),
            relative_patterns: watched.relative_pattern_support == Some(true),
            refresh_hints: workspace.inlay_hint.is_some_and(|hint| hint.refresh_support == Some(true)),
            refresh_lenses: workspace.code_lens.is_some_and(|lens| lens.refresh_support == Some(true)),
            paints_deltas: client.experimental.as_ref().is_some_and(|own| own["heatline"]["paintsDeltas"] == true),
        }
    }
}

/// The first encoding that the client offers and we know.
pub fn encoding(client: &ClientCapabilities) -> Encoding {
    let offered = client.general.as_ref().and_then(|general| general.position_encodings.as_deref());
    let known = |kind: &PositionEncodingKind| match kind.as_str() {
        "utf-8" => Some(Encoding::Utf8),
        "utf-16" => Some(Encoding::Utf16),
        "utf-32" => Some(Encoding::Utf32),
        _ => None,
    };
    offered.unwrap_or_default().iter().find_map(known).unwrap_or_default()
}

/// The protocol's name of an encoding.
pub fn encoding_kind(encoding: Encoding) -> PositionEncodingKind {
    match encoding {
        Encoding::Utf8 => PositionEncodingKind::UTF8,
        Encoding::Utf16 => PositionEncodingKind::UTF16,
        Encoding::Utf32 => PositionEncodingKind::UTF32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_first_known_encoding_is_taken() {
        let taken = |offered: serde_json::Value| {
            let client = json!({ "general": { "positionEncodings": offered } });
            encoding(&serde_json::from_value(client).unwrap())
        };
        assert_eq!(taken(json!(["utf-7", "utf-32", "utf-8"])), Encoding::Utf32);
        assert_eq!(taken(json!(["utf-8", "utf-16"])), Encoding::Utf8);
        assert_eq!(taken(json!([])), Encoding::Utf16);
        assert_eq!(encoding(&ClientCapabilities::default()), Encoding::Utf16);
    }
}
