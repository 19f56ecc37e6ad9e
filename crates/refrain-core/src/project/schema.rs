//! The JSON Schema of a project's files, generated from the same table as the reader.
//!
//! It is of draft-07, which the editors that know TOML read. An editor finds it by a first line such as
//! `#:schema ../refrain.schema.json`, or by a rule of its own for `jobs/*.toml`. A schema knows types, keys and
//! words; what a cron pattern means and what belongs together only the reader knows.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::document::Document;
use super::keys::{FileKey, JOB, KeyKind, PROJECT, Support, Table};
use super::problem::SourceFile;

/// The schema of both kinds of files: `refrain.toml` and `jobs/NAME.toml`.
///
/// ```
/// let schema = refrain_core::project::schema();
/// assert_eq!(schema["$schema"], "http://json-schema.org/draft-07/schema#");
/// assert_eq!(schema["definitions"]["job-file"]["properties"]["queue"]["type"], "boolean");
/// ```
pub fn schema() -> Value {
    let mut definitions = BTreeMap::new();
    for table in [&PROJECT, &JOB] {
        define(table, &mut definitions);
    }
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Refrain",
        "description": "refrain.toml and jobs/NAME.toml of a Refrain project. Begin a file with \
                        `#:schema ../refrain.schema.json`, and an editor completes and checks it.",
        "oneOf": [reference(&PROJECT), reference(&JOB)],
        "definitions": definitions,
    })
}

fn define(table: &'static Table, definitions: &mut BTreeMap<&'static str, Value>) {
    if definitions.contains_key(table.name) {
        return;
    }
    let properties: Map<String, Value> =
        table.keys.iter().map(|key| (key.name.to_owned(), property(key))).collect();
    let required: Vec<&str> = table.keys.iter().filter(|key| key.is_required).map(|key| key.name).collect();
    let definition = json!({
        "description": table.doc,
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    definitions.insert(table.name, definition);
    for below in table.keys.iter().flat_map(|key| key.kind.tables()) {
        define(below, definitions);
    }
}

fn reference(table: &Table) -> Value {
    json!({ "$ref": format!("#/definitions/{}", table.name) })
}

fn property(key: &FileKey) -> Value {
    let kind = of_kind(key.kind);
    let mut property = match kind {
        // In draft-07, siblings of a reference are ignored.
        Value::Object(kind) if !kind.contains_key("$ref") => kind,
        kind => Map::from_iter([("allOf".to_owned(), json!([kind]))]),
    };
    let doc = match key.support {
        Support::Built => key.doc.to_owned(),
        Support::NotYet(instead) => format!("{} Not supported yet: {instead}.", key.doc),
    };
    property.insert("description".to_owned(), json!(doc));
    property.insert("examples".to_owned(), json!([written(key.example)]));
    property.extend(key.default.map(|default| ("default".to_owned(), written(default))));
    Value::Object(property)
}

fn of_kind(kind: KeyKind) -> Value {
    match kind {
        // TOML dates are strings to a schema.
        KeyKind::Text(_) | KeyKind::Moment => json!({ "type": "string" }),
        KeyKind::Word(words) => {
            let words: Vec<&str> = words().into_iter().map(|(word, _)| word).collect();
            json!({ "type": "string", "enum": words })
        }
        KeyKind::Flag => json!({ "type": "boolean" }),
        KeyKind::Number(least, most) => json!({ "type": "integer", "minimum": least, "maximum": most }),
        KeyKind::List(inner) => json!({ "type": "array", "items": of_kind(*inner), "minItems": 1 }),
        KeyKind::Table(table) => reference(table),
        KeyKind::Tables(table) => json!({ "type": "array", "items": reference(table) }),
        KeyKind::Map(inner) => json!({ "type": "object", "additionalProperties": of_kind(*inner) }),
        KeyKind::Json => json!({}),
        KeyKind::OneOf(kinds) => {
            json!({ "oneOf": kinds.iter().map(|kind| of_kind(*kind)).collect::<Vec<_>>() })
        }
    }
}

/// An example value of a file as JSON.
fn written(toml: &str) -> Value {
    let source = SourceFile::new("", format!("value = {toml}"));
    let document = Document::read(&source);
    document.root().get("value").map_or(Value::Null, super::document::Value::json)
}
