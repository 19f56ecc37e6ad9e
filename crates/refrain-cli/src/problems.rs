//! What is wrong with the files of a project, drawn where it stands.

use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, SourceCode};
use refrain::Problems;
use refrain::core::project::Problem;

use crate::output::is_colourful;

/// How wide a drawing is.
const WIDTH: usize = 110;

/// One problem with the file it lies in.
#[derive(Debug)]
struct Drawn<'p> {
    problem: &'p Problem,
    source: NamedSource<String>,
}

impl std::fmt::Display for Drawn<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.problem.message)
    }
}

impl std::error::Error for Drawn<'_> {}

impl Diagnostic for Drawn<'_> {
    fn help<'a>(&'a self) -> Option<Box<dyn std::fmt::Display + 'a>> {
        self.problem.help.as_ref().map(|help| Box::new(help) as Box<dyn std::fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&self.source)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let span = self.problem.span.clone();
        let label = LabeledSpan::new_with_span(Some(self.problem.label.clone()), span);
        Some(Box::new(std::iter::once(label)))
    }
}

/// All of them, one below the other, file by file.
pub(crate) fn draw(problems: &Problems) -> String {
    let theme = if is_colourful() { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
    let handler = GraphicalReportHandler::new_themed(theme).with_width(WIDTH).with_links(false);
    let mut text = String::new();
    for problem in in_order(problems) {
        let source = problems.sources.iter().find(|source| source.path == problem.path);
        let written = source.map(|source| source.text.clone()).unwrap_or_default();
        let drawn = Drawn { problem, source: NamedSource::new(&problem.path, written) };
        if handler.render_report(&mut text, &drawn).is_err() {
            text.push_str(&problem.to_string());
        }
        text.push('\n');
    }
    problems.redactor.redact(text.trim_end_matches('\n')).into_owned() + "\n"
}

/// By file, in the order in which files were read, and from top to bottom.
pub(crate) fn in_order(problems: &Problems) -> Vec<&Problem> {
    let file = |problem: &Problem| problems.sources.iter().position(|source| source.path == problem.path);
    let mut sorted: Vec<&Problem> = problems.problems.iter().collect();
    sorted.sort_by_key(|problem| (file(problem), problem.span.start));
    sorted
}
