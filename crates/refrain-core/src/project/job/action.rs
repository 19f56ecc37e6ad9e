//! What a job does: exactly one thing.

use super::Reader;
use super::publish::Published;
use crate::Template;
use crate::feed::FeedSource;
use crate::project::Action;
use crate::project::document::Text;
use crate::project::names::Names;
use crate::publish::Step;

/// What a job may do; it does one of these.
const ACTIONS: [&str; 5] = ["command", "sql", "query", "step", "http"];

/// What a job may do besides, or alone.
const ALSO: [&str; 2] = ["digest", "effect"];

/// Programs that take a program as an argument, and how that argument is announced.
const INTERPRETERS: [&str; 12] =
    ["sh", "bash", "dash", "zsh", "ksh", "fish", "python", "python3", "perl", "ruby", "node", "php"];
const ANNOUNCED_BY: [char; 3] = ['c', 'e', 'r'];

impl Reader<'_> {
    pub(super) fn action(&mut self, names: Names, published: Published) -> Option<Action> {
        let actions: Vec<&str> = ACTIONS.into_iter().filter(|key| self.has(key)).collect();
        match actions.as_slice() {
            [] if !ALSO.iter().any(|key| self.has(key)) => {
                let message = format!("`{}` does nothing", self.name);
                let help = "add command = [\"./script.sh\", \"{ds}\"] or sql = \"…\"";
                self.problem("command", message, "neither `command` nor `sql` in this file", help);
            }
            [first, others @ ..] => {
                for other in others {
                    let message = format!("a job does one thing, and this one has `{first}` and `{other}`");
                    let help = "make two jobs of it, or leave one out";
                    self.problem(other, message, "a second action", help);
                }
            }
            [] => {}
        }
        self.only_with_a_command();
        let query = self.text("query").and_then(|query| self.query(&query, names));
        let command = self.command(names);
        let sql = self.text("sql").and_then(|sql| self.statements(&sql, names)).map(Action::Sql);
        let Published { result, steps, .. } = published;
        if self.is_feed() {
            let source = command.map(FeedSource::Command).or(query.map(FeedSource::Query));
            return self.feed(source, names, result).map(Box::new).map(Action::Units);
        }
        let published = query.zip(result).map(|(query, publish)| vec![Step { query, publish }]);
        let published = published.or((!steps.is_empty()).then_some(steps));
        command.map(Action::Command).or(sql).or(published.map(Action::Publish))
    }

    fn only_with_a_command(&mut self) {
        for key in ["env", "output", "interrupted"] {
            if self.has(key) && !self.has("command") {
                let message = format!("`{key}` means nothing without a `command`");
                self.problem(key, message, "no command", "leave it out");
            }
        }
    }

    fn command(&mut self, names: Names) -> Option<Vec<Template>> {
        let elements = self.texts("command");
        self.interpreted(&elements);
        let (program, _) = elements.split_first()?;
        let templates: Option<Vec<Template>> =
            elements.iter().map(|element| self.template(element, names)).collect();
        let templates = templates?;
        if templates.first().is_some_and(|program| program.names().next().is_some()) {
            let problem =
                program.wrong("the program is fixed; only its arguments take values", "a value in here");
            self.problems
                .push(problem.help("write the program first, and each argument as an element of its own"));
        }
        if program.value.trim().is_empty() {
            self.problems.push(program.wrong("the first element is the program to run", "it is empty"));
        }
        Some(templates)
    }

    /// A value that is pasted into a script is a script: whoever may enqueue a payload could run anything.
    fn interpreted(&mut self, elements: &[Text]) {
        let Some((program, arguments)) = elements.split_first() else { return };
        let name = program.value.rsplit('/').next().unwrap_or_default();
        if !INTERPRETERS.contains(&name) {
            return;
        }
        let mut options = arguments.iter().take_while(|argument| argument.value.starts_with('-'));
        let Some(announced) = options.position(|option| option.value.ends_with(ANNOUNCED_BY)) else { return };
        let Some(script) = arguments.get(announced + 1) else { return };
        if Template::parse(&script.value).is_ok_and(|script| script.names().next().is_some()) {
            let problem = script.wrong("a value would become part of a script", "pasted into a script");
            let help = "read it from the environment, as in \"$REFRAIN_DS\", or give it as an argument of its own: \
                        [\"sh\", \"-c\", \"echo \\\"$1\\\"\", \"sh\", \"{ds}\"]";
            self.problems.push(problem.help(help));
        }
    }
}
