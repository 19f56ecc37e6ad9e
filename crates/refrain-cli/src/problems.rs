//! The problems in the files of a project, drawn at their lines.
//!
//! A file may hold anything: terminal escape sequences, lines of a megabyte. So an excerpt is drawn: the lines around the
//! problem, cut to a readable length, with escape sequences replaced.

use std::collections::{BTreeMap, BTreeSet};

use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteError, MietteSpanContents,
    SourceCode, SourceSpan, SpanContents,
};
use refrain::core::project::{Positions, Problem, SourceFile};
use refrain::core::terminal::{acts, harmless};
use refrain::project::Problems;

use crate::output::is_colourful;

/// The width of a drawing.
const WIDTH: usize = 110;
/// How many characters of a line are drawn, and how many of them before the problem.
const LINE_MAX: usize = 400;
const BEFORE_MAX: usize = 100;
/// The most lines that are drawn for a problem.
const LINES_MAX: usize = 12;

/// The most problems of all files together that are drawn; the others are counted.
pub(crate) const SHOWN_MAX: usize = 200;

/// A problem with its part of the file.
#[derive(Debug)]
struct Drawn<'p> {
    problem: &'p Problem,
    excerpt: Excerpt,
}

/// A few lines of a file.
#[derive(Debug)]
struct Excerpt {
    name: String,
    text: String,
    /// How many lines precede it.
    before: usize,
    /// The bytes of the problem in the text.
    span: SourceSpan,
    /// The line and column of the problem in the file, from 0.
    place: (usize, usize),
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
        Some(&self.excerpt)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let label = LabeledSpan::new_with_span(Some(self.problem.label.clone()), self.excerpt.span);
        Some(Box::new(std::iter::once(label)))
    }
}

impl SourceCode for Excerpt {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        lines_before: usize,
        lines_after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let contents = self.text.read_span(span, lines_before, lines_after)?;
        // Without surrounding lines, the caller wants the place of the problem.
        let (line, column) = match (lines_before, lines_after) {
            (0, 0) => self.place,
            _ => (contents.line() + self.before, contents.column()),
        };
        let (data, span, count) = (contents.data(), *contents.span(), contents.line_count());
        Ok(Box::new(MietteSpanContents::new_named(self.name.clone(), data, span, line, column, count)))
    }
}

impl Excerpt {
    fn of(problem: &Problem, source: &SourceFile, positions: &Positions<'_>) -> Excerpt {
        let (start, end) =
            (problem.span.start.min(source.text.len()), problem.span.end.min(source.text.len()));
        let (first, last) = (positions.line(start), positions.line(end.max(start)));
        let (line, column) = positions.of(start);
        let from = first.saturating_sub(1).max(1);
        let until = (last + 1).min(first + LINES_MAX);
        let mut text = String::new();
        let (mut begin, mut finish) = (None, None);
        for number in from..=until {
            let Some(bytes) = positions.bytes_of(number) else { break };
            let whole = source.text.get(bytes.clone()).unwrap_or_default();
            // A long line is cut around its problem, any other from its beginning.
            let is_long = whole.chars().nth(LINE_MAX).is_some();
            let skipped =
                if number == first && is_long { (column - 1).saturating_sub(BEFORE_MAX) } else { 0 };
            // Nothing follows the last newline of a file.
            if number > last && whole.is_empty() && bytes.end == source.text.len() {
                break;
            }
            if skipped > 0 {
                text.push('…');
            }
            for (at, letter) in whole.char_indices().skip(skipped).take(LINE_MAX) {
                if bytes.start + at >= start {
                    begin.get_or_insert(text.len());
                }
                if bytes.start + at >= end {
                    finish.get_or_insert(text.len());
                }
                text.push(if letter != '\t' && acts(letter) { char::REPLACEMENT_CHARACTER } else { letter });
            }
            if bytes.end >= start && number >= first {
                begin.get_or_insert(text.len());
            }
            if bytes.end >= end && number >= first {
                finish.get_or_insert(text.len());
            }
            if whole.chars().nth(skipped + LINE_MAX).is_some() {
                text.push('…');
            }
            text.push('\n');
        }
        let begin = begin.unwrap_or(text.len());
        let length = finish.unwrap_or(text.len()).saturating_sub(begin);
        let (name, span) = (harmless(&problem.path), SourceSpan::new(begin.into(), length));
        Excerpt { name, text, before: from - 1, span, place: (line - 1, column - 1) }
    }
}

/// All problems, file by file.
pub(crate) fn draw(problems: &Problems) -> String {
    let theme = if is_colourful() { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
    let handler = GraphicalReportHandler::new_themed(theme).with_width(WIDTH).with_links(false);
    let sources: BTreeMap<&str, (&SourceFile, Positions<'_>)> =
        problems.sources.iter().map(|source| (source.path.as_str(), (source, source.positions()))).collect();
    let unknown = SourceFile::new("", "");
    let mut text = String::new();
    let all = in_order(problems);
    for problem in all.iter().take(SHOWN_MAX).copied() {
        let excerpt = match sources.get(problem.path.as_str()) {
            Some((source, positions)) => Excerpt::of(problem, source, positions),
            None => Excerpt::of(problem, &unknown, &unknown.positions()),
        };
        let drawn = Drawn { problem, excerpt };
        if handler.render_report(&mut text, &drawn).is_err() {
            text.push_str(&harmless(&problem.to_string()));
        }
        text.push('\n');
    }
    if let Some(others) = all.get(SHOWN_MAX..).and_then(others) {
        text.push_str(&others);
    }
    problems.redactor.redact(text.trim_end_matches('\n')).into_owned() + "\n"
}

/// How many problems are not drawn.
fn others(others: &[&Problem]) -> Option<String> {
    let files: BTreeSet<&str> = others.iter().map(|problem| problem.path.as_str()).collect();
    let count = |number: usize, what: &str| format!("{number} {what}{}", if number == 1 { "" } else { "s" });
    let (faults, files) = (count(others.len(), "more problem"), count(files.len(), "file"));
    (!others.is_empty()).then(|| format!("and {faults} in {files}: fix those above first"))
}

/// By file, in the order in which files were read, and from top to bottom.
pub(crate) fn in_order(problems: &Problems) -> Vec<&Problem> {
    let files: BTreeMap<&str, usize> =
        (0..).zip(&problems.sources).map(|(number, source)| (source.path.as_str(), number)).collect();
    let mut sorted: Vec<&Problem> = problems.problems.iter().collect();
    sorted.sort_by_key(|problem| (files.get(problem.path.as_str()), problem.span.start));
    sorted
}
