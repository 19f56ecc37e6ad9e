//! The table of keys, the reader and the schema agree.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::Value as Json;

use super::document::Document;
use super::key_check::KeyCheck;
use super::keys::{FileKey, JOB, PROJECT, Support, Table};
use super::problem::{Problem, SourceFile};
use super::{Files, JobFile, read, schema};

/// Values of every TOML type; to an editor, dates are strings.
const SAMPLES: [&str; 9] =
    ["5", "-5", "1.5", "true", "[]", "[5]", "{}", "{ no-such-key = 5 }", "[{ no-such-key = 5 }]"];

fn tables() -> BTreeMap<&'static str, &'static Table> {
    let mut tables = BTreeMap::new();
    let mut open: Vec<&'static Table> = vec![&PROJECT, &JOB];
    while let Some(table) = open.pop() {
        if tables.insert(table.name, table).is_none() {
            open.extend(table.keys.iter().flat_map(|key| key.kind.tables()));
        }
    }
    tables
}

/// A table in which this key has this value, and all required keys are set.
fn written(table: &'static Table, key: &FileKey, value: &str) -> SourceFile {
    let others = table.keys.iter().filter(|other| other.is_required && other.name != key.name);
    let lines = others.map(|other| (other.name, other.example)).chain([(key.name, value)]);
    let lines: Vec<String> = lines.map(|(name, value)| format!("{name} = {value}")).collect();
    SourceFile::new(
        "",
        lines.join(
            "
",
        ),
    )
}

/// What the reader reports about a table alone, without keys that are not built.
fn refused(table: &'static Table, source: &SourceFile) -> Vec<Problem> {
    let files = Files {
        project: source,
        jobs: &[],
        environment: &|_| Some(std::ffi::OsString::new()),
        sibling: &|_| None,
    };
    let document = Document::read(source);
    assert_eq!(document.faults, [], "{}", source.text);
    let shape = KeyCheck::of(table, &document.root(), &files);
    shape.problems.into_iter().filter(|problem| problem.label != "not supported yet").collect()
}

fn json(source: &SourceFile) -> Json {
    let document = Document::read(source);
    Json::Object(document.root().iter().map(|(key, _, value)| (key.to_owned(), value.json())).collect())
}

/// Whether a value conforms to the schema: the subset of draft-07 that the schema uses.
fn conforms(schema: &Json, rule: &Json, value: &Json) -> bool {
    let all = |rules: &Json| rules.as_array().unwrap().iter().all(|rule| conforms(schema, rule, value));
    let count =
        |rules: &Json| rules.as_array().unwrap().iter().filter(|rule| conforms(schema, rule, value)).count();
    rule.as_object().unwrap().iter().all(|(word, rule_of_word)| match word.as_str() {
        "$ref" => {
            let name = rule_of_word.as_str().unwrap().strip_prefix("#/definitions/").unwrap();
            conforms(schema, &schema["definitions"][name], value)
        }
        "allOf" => all(rule_of_word),
        "oneOf" => count(rule_of_word) == 1,
        "type" => match rule_of_word.as_str().unwrap() {
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "integer" => value.is_i64(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            other => panic!("{other}"),
        },
        "enum" => rule_of_word.as_array().unwrap().contains(value),
        "minimum" => value.as_i64().is_none_or(|number| number >= rule_of_word.as_i64().unwrap()),
        "maximum" => value.as_i64().is_none_or(|number| number <= rule_of_word.as_i64().unwrap()),
        "minItems" => value.as_array().is_none_or(|list| list.len() as u64 >= rule_of_word.as_u64().unwrap()),
        "items" => value.as_array().into_iter().flatten().all(|item| conforms(schema, rule_of_word, item)),
        "required" => {
            rule_of_word.as_array().unwrap().iter().all(|key| value.get(key.as_str().unwrap()).is_some())
        }
        "properties" => value
            .as_object()
            .into_iter()
            .flatten()
            .all(|(key, value)| rule_of_word.get(key).is_none_or(|rule| conforms(schema, rule, value))),
        "additionalProperties" => value.as_object().into_iter().flatten().all(|(key, value)| {
            let is_known = rule.get("properties").is_some_and(|known| known.get(key).is_some());
            is_known || (rule_of_word.is_object() && conforms(schema, rule_of_word, value))
        }),
        "description" | "examples" | "default" => true,
        other => panic!("the schema uses {other}, which this test does not support"),
    })
}

static SCHEMA: LazyLock<Json> = LazyLock::new(schema);

fn conforms_to(table: &Table, source: &SourceFile) -> bool {
    conforms(&SCHEMA, &SCHEMA["definitions"][table.name], &json(source))
}

#[test]
fn the_files_that_use_every_key_conform_to_the_schema() {
    let project = include_str!("../../tests/projects/every-key/refrain.toml");
    let jobs = [
        include_str!("../../tests/projects/every-key/jobs/audit-digest.toml"),
        include_str!("../../tests/projects/every-key/jobs/export.toml"),
        include_str!("../../tests/projects/every-key/jobs/inventory-adjustments.toml"),
        include_str!("../../tests/projects/every-key/jobs/invoice-sync.toml"),
        include_str!("../../tests/projects/every-key/jobs/revenue-daily.toml"),
        include_str!("../../tests/projects/every-key/jobs/welcome-email.toml"),
    ];
    for (table, other, text) in
        jobs.map(|job| (&JOB, &PROJECT, job)).into_iter().chain([(&PROJECT, &JOB, project)])
    {
        let source = SourceFile::new("", text);
        assert!(conforms_to(table, &source) && !conforms_to(other, &source), "{text}");
        assert!(
            conforms(&SCHEMA, &serde_json::json!({ "oneOf": SCHEMA["oneOf"] }), &json(&source)),
            "{text}"
        );
    }
}

#[test]
fn every_key_is_accepted_with_its_example_by_the_reader_and_by_the_schema() {
    for table in tables().into_values() {
        for key in table.keys {
            for value in [Some(key.example), key.default].into_iter().flatten() {
                let source = written(table, key, value);
                assert_eq!(refused(table, &source), [], "{}", source.text);
                assert!(conforms_to(table, &source), "{}", source.text);
            }
        }
    }
}

#[test]
fn every_key_refuses_values_of_other_types_in_the_reader_and_in_the_schema() {
    let mut refusals = 0;
    for table in tables().into_values() {
        for key in table.keys {
            for value in SAMPLES {
                let source = written(table, key, value);
                let by_reader = !refused(table, &source).is_empty();
                assert_eq!(by_reader, !conforms_to(table, &source), "{}", source.text);
                refusals += usize::from(by_reader);
            }
        }
        let unknown = SourceFile::new("", "no-such-key = 5\n");
        assert!(!refused(table, &unknown).is_empty() && !conforms_to(table, &unknown));
    }
    assert!(refusals > 300, "{refusals}");
}

#[test]
fn the_schema_refuses_nothing_that_the_reader_takes() {
    for table in tables().into_values() {
        for key in table.keys {
            for value in [r#""no such word""#, r#""""#, "2026-06-01", r#"["a", "b"]"#, r#"{ a = "b" }"#] {
                let source = written(table, key, value);
                assert!(
                    conforms_to(table, &source) || !refused(table, &source).is_empty(),
                    "{}",
                    source.text
                );
            }
        }
    }
}

#[test]
fn every_key_states_its_purpose_and_an_alternative_if_it_is_not_built() {
    for table in tables().into_values() {
        for key in table.keys {
            assert!(key.doc.ends_with('.') && key.doc.len() < 100, "{}", key.name);
            if let Support::NotYet(instead) = key.support {
                assert!(!instead.is_empty() && !instead.ends_with('.'), "{}", key.name);
            }
        }
    }
}

fn job(text: &str) -> JobFile {
    let settings = "[project]\nname = \"shop\"\n[databases]\nshop = \"sqlite:shop.db\"\n";
    let project = SourceFile::new("refrain.toml", settings);
    let job = [SourceFile::new("jobs/a.toml", text)];
    let files = Files { project: &project, jobs: &job, environment: &|_| None, sibling: &|_| None };
    read(&files).unwrap_or_else(|problems| panic!("{text}: {problems:?}")).jobs.remove(0)
}

/// A job in which a nested key may be written: the text before it, and the text after it.
fn around(table: &str, key: &str) -> (String, &'static str) {
    let when = "schedule = \"@daily\"\nwindow = \"day\"\n";
    let (what, rest) = match (table, key) {
        ("unit", _) => (
            "command = [\"./a.sh\"]\noutput = \"units\"\n\
             unit = { key = \"a:{id}\", http = { url = \"https://example.org\" }",
            "}\n",
        ),
        ("cursor", _) => (
            "command = [\"./a.sh\"]\noutput = \"units\"\n\
             unit = { key = \"a:{id}\", command = [\"./b.sh\"] }\ncursor = { ",
            "}\n",
        ),
        ("publish", "ledger") => (
            "command = [\"./a.sh\"]\noutput = \"units\"\nunit = { key = \"a:{id}\" }\n\
             publish = { table = \"t\", mode = \"land\"",
            "}\n",
        ),
        ("publish", "insert-missing") => (
            "query = \"select 1\"\n\
             publish = { table = \"t\", mode = \"apply-delta\", key = [\"a\"], columns = [\"b\"]",
            "}\n",
        ),
        ("publish", "format") => ("query = \"select 1\"\npublish = { path = \"out/{ds}\"", "}\n"),
        ("publish", _) => {
            ("query = \"select 1\"\npublish = { table = \"t\", mode = \"merge\", key = [\"a\"]", "}\n")
        }
        (table, _) => return (format!("{when}command = [\"./a.sh\"]\n{table} = {{ "), "}\n"),
    };
    (format!("{when}{what}"), rest)
}

#[test]
fn a_default_that_is_written_changes_nothing() {
    let plain = "schedule = \"@daily\"\ncommand = [\"./a.sh\"]\n";
    let mut seen = 0;
    for key in JOB.keys.iter().filter(|key| key.support == Support::Built) {
        if let Some(value) = key.default {
            assert_eq!(job(&format!("{plain}{} = {value}\n", key.name)), job(plain), "{}", key.name);
            seen += 1;
        }
        let below = key.kind.tables().into_iter().flat_map(|table| table.keys);
        for (inner, value) in below.filter_map(|inner| Some((inner, inner.default?))) {
            let (before, rest) = around(key.name, inner.name);
            if key.name == "step" || inner.support != Support::Built {
                continue;
            }
            let comma = if before.ends_with("{ ") { "" } else { ", " };
            let with = format!("{before}{comma}{} = {value} {rest}", inner.name);
            assert_eq!(job(&with), job(&format!("{before}{rest}")), "{with}");
            seen += 1;
        }
    }
    assert!(seen >= 16, "{seen}");
}
