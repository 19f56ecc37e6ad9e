//! Effects: each is caused by a fact and delivered in one way.

use super::JobReader;
use crate::project::document::{Entries, LocatedText, Value};
use crate::project::environment;
use crate::project::names::Names;
use crate::project::problem::Problem;
use crate::{KeyTemplate, Template};

/// The keys of the ways of delivery.
const WAYS: [&str; 3] = ["http", "webhook", "command"];

impl JobReader<'_> {
    pub(super) fn effects(&mut self, names: Names) {
        let with_fields = Names { fields: true, ..names };
        if let Some(unit) = self.table("unit") {
            self.key(&unit, with_fields);
            self.call(&unit, with_fields);
            self.in_doubt(&unit);
        }
        if let Some(http) = self.table("http") {
            self.texts_of_call(&http, names);
        }
        let mut known: Vec<String> = Vec::new();
        for effect in self.entries.get("effect").and_then(Value::list).unwrap_or_default() {
            let Some(effect) = effect.table() else { continue };
            if let Some(name) = effect.text("name") {
                if known.contains(&name.value) {
                    let message = format!("two effects of this job are called `{}`", name.value);
                    self.problems.push(name.wrong(message, "the second").help("give it another name"));
                }
                known.push(name.value);
            }
            let has_fields = self.has("unit") || effect.has("for-each");
            let names = if has_fields { with_fields } else { names };
            self.effect(&effect, names);
        }
    }

    fn effect(&mut self, effect: &Entries<'_>, names: Names) {
        if let Some(query) = effect.text("for-each") {
            self.query(&query, Names { fields: false, ..names });
        }
        self.key(effect, names);
        self.call(effect, names);
        let ways: Vec<&str> = WAYS.into_iter().filter(|way| effect.has(way)).collect();
        let problem = |label: &str| {
            let message = "an effect needs exactly one of `http`, `webhook` and `command`";
            Problem::new(effect.path(), effect.span(), message, label)
        };
        match ways.as_slice() {
            [] => self.problems.push(problem("it does nothing").help("add command = [\"./mail.sh\"]")),
            [_] => {}
            _ => {
                let problem = problem("more than one");
                self.problems.push(problem.help("split it into two effects, each with its own key"));
            }
        }
        self.in_doubt(effect);
    }

    fn in_doubt(&mut self, effect: &Entries<'_>) {
        let by_provider = effect.text("in-doubt").is_some_and(|policy| policy.value == "provider-key");
        if by_provider && !effect.has("provider-ttl") && !effect.has("webhook") {
            let message = "`provider-key` needs `provider-ttl`: how long the receiver remembers a key";
            let problem = Problem::new(
                effect.path(),
                effect.key_span("in-doubt"),
                message,
                "`provider-ttl` is missing",
            );
            self.problems.push(problem.help("add provider-ttl = \"24h\""));
        }
        if effect.has("provider-ttl") && !by_provider && !effect.has("webhook") {
            let message = "`provider-ttl` has no effect without in-doubt = \"provider-key\"";
            let problem =
                Problem::new(effect.path(), effect.key_span("provider-ttl"), message, "no `provider-key`");
            self.problems.push(problem.help("leave it out"));
        }
    }

    fn key(&mut self, entries: &Entries<'_>, names: Names) {
        let Some(text) = entries.text("key") else { return };
        let Ok(key) = KeyTemplate::parse(&text.value) else { return };
        let content = crate::key::template::CONTENT;
        let places: Vec<_> = key.places().filter(|(name, _)| *name != content || !names.fields).collect();
        self.placeholders(&text, places.into_iter(), names);
    }

    /// The templates of a call or command.
    fn call(&mut self, entries: &Entries<'_>, names: Names) {
        self.argv(&super::texts(entries, "command"), names);
        for way in ["http", "webhook"] {
            if let Some(call) = entries.get(way).and_then(Value::table) {
                self.texts_of_call(&call, names);
            }
        }
    }

    fn texts_of_call(&mut self, call: &Entries<'_>, names: Names) {
        for (key, _, value) in call.iter() {
            if key != "method" && key != "type" {
                for text in texts_below(value) {
                    if let Ok(template) = Template::parse(&environment::masked(&text.value)) {
                        self.placeholders(&text, template.places(), names);
                    }
                }
            }
        }
    }
}

/// All strings in a value, at any depth.
pub(super) fn texts_below(value: Value<'_>) -> Vec<LocatedText> {
    let elements = value.list().into_iter().flatten();
    let fields: Vec<Value<'_>> =
        value.table().iter().flat_map(|table| table.iter().map(|(.., value)| value)).collect();
    value.text().into_iter().chain(elements.chain(fields).flat_map(texts_below)).collect()
}
