//! The action of a job: exactly one.

use super::JobReader;
use super::publish::JobOutputs;
use crate::feed::FeedSource;
use crate::project::Action;
use crate::project::names::Names;
use crate::publish::PublishStep;

/// The keys of actions; a job has one of them.
const ACTIONS: [&str; 5] = ["command", "sql", "query", "step", "http"];

/// The keys that need a command or stand alone.
const ALSO: [&str; 2] = ["digest", "effect"];

impl JobReader<'_> {
    pub(super) fn action(&mut self, names: Names, published: JobOutputs) -> Option<Action> {
        let actions: Vec<&str> = ACTIONS.into_iter().filter(|key| self.has(key)).collect();
        match actions.as_slice() {
            [] if !ALSO.iter().any(|key| self.has(key)) => {
                let message = format!("`{}` does nothing", self.name);
                let help = "add command = [\"./script.sh\", \"{ds}\"] or sql = \"…\"";
                self.problem("command", message, "neither `command` nor `sql` in this file", help);
            }
            [first, others @ ..] => {
                for other in others {
                    let message = format!("a job has one action, and this one has `{first}` and `{other}`");
                    let help = "split it into two jobs, or leave one out";
                    self.problem(other, message, "a second action", help);
                }
            }
            [] => {}
        }
        self.only_with_a_command();
        let query = self.text("query").and_then(|query| self.query(&query, names));
        let words = self.texts("command");
        let command = self.argv(&words, names);
        let sql = self.text("sql").and_then(|sql| self.statements(&sql, names)).map(Action::Sql);
        let JobOutputs { result, steps, .. } = published;
        if self.is_feed() {
            let source = command.map(FeedSource::Command).or(query.map(FeedSource::Query));
            return self.feed(source, names, result).map(Box::new).map(Action::Units);
        }
        let published = query.zip(result).map(|(query, publish)| vec![PublishStep { query, publish }]);
        let published = published.or((!steps.is_empty()).then_some(steps));
        command.map(Action::Command).or(sql).or(published.map(Action::Publish))
    }

    fn only_with_a_command(&mut self) {
        for key in ["env", "output", "interrupted"] {
            if self.has(key) && !self.has("command") {
                let message = format!("`{key}` has no effect without a `command`");
                self.problem(key, message, "no command", "leave it out");
            }
        }
    }
}
