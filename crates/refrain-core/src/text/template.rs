//! Text with placeholders, as in `--date={ds}`.
//!
//! A template is not a language: it has names and nothing else, no expressions, no conditions, no escapes that depend on
//! where the text goes. It renders to one string; the caller decides what that string may be. Each element of a command's
//! argument list is a template of its own, so a value can never become two arguments, and a value that would be taken for
//! an option is refused.

use std::ops::Range;
use std::{fmt, str};

use crate::ParseError;
use crate::values::Values;

const WHAT: &str = "template";

/// A string with placeholders.
///
/// ```
/// use refrain_core::{Template, Values};
///
/// let template = Template::parse("--date={ds}")?;
/// assert_eq!(template.names().collect::<Vec<_>>(), ["ds"]);
/// let values = Values { ds: Some("2026-06-09".to_owned()), ..Values::default() };
/// assert_eq!(template.render(&values).as_deref(), Ok("--date=2026-06-09"));
/// # Ok::<(), refrain_core::ParseError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Template {
    text: String,
    pieces: Vec<TemplatePiece>,
}

/// A part of a template.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum TemplatePiece {
    /// Literal text, with braces unescaped.
    Literal(String),
    /// A name between braces, and its position, the braces included.
    Name(String, Range<usize>),
}

impl TemplatePiece {
    /// The name and its position.
    pub(crate) fn name(&self) -> Option<(&str, Range<usize>)> {
        match self {
            TemplatePiece::Literal(_) => None,
            TemplatePiece::Name(name, span) => Some((name, span.clone())),
        }
    }
}

/// Why a template cannot be rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// The run has no value for the name.
    #[error("{{{name}}} in `{template}` has no value in this run: give it one, or leave the name out")]
    Missing {
        /// The name.
        name: String,
        /// The template.
        template: String,
    },
    /// A program would take the value for an option.
    #[error(
        "the value of `{template}` begins with `-` and would be taken for an option: write `\"--name={template}\"` \
         as one element, or put `\"--\"` before it"
    )]
    LooksLikeAnOption {
        /// The template.
        template: String,
    },
    /// A program argument cannot contain the value.
    #[error("the value of `{template}` contains a NUL character, which an argument cannot contain")]
    Nul {
        /// The template.
        template: String,
    },
}

impl Template {
    /// Reads a template: text and `{name}`, with `{{` and `}}` for braces. A name is letters, digits and `_`, or
    /// several of those joined by `.`.
    pub fn parse(text: &str) -> Result<Template, ParseError> {
        let pieces = scan(WHAT, text)?;
        for piece in &pieces {
            if let TemplatePiece::Name(name, span) = piece
                && !is_path(name)
            {
                let help =
                    "a name is letters, digits and `_`, as in {ds} or {payload.user_id}; a brace is `{{`";
                return Err(ParseError::new(WHAT, text, span.clone(), "this is not a valid name").help(help));
            }
        }
        Ok(Template { text: text.to_owned(), pieces })
    }

    /// The same template with the text as the file has it: values filled in from the environment are not shown.
    pub(crate) fn written(self, text: &str) -> Template {
        Template { text: text.to_owned(), ..self }
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.places().map(|(name, _)| name)
    }

    /// The names and their positions, braces included.
    pub(crate) fn places(&self) -> impl Iterator<Item = (&str, Range<usize>)> {
        self.pieces.iter().filter_map(TemplatePiece::name)
    }

    /// Renders the template.
    pub fn render(&self, values: &Values) -> Result<String, TemplateError> {
        self.rendered(values, |value| value)
    }

    /// Renders the template with values that are transformed first.
    pub(crate) fn rendered(
        &self,
        values: &Values,
        change: impl Fn(String) -> String,
    ) -> Result<String, TemplateError> {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                TemplatePiece::Literal(literal) => text.push_str(literal),
                TemplatePiece::Name(name, _) => {
                    text.push_str(&change(values.text(name).ok_or_else(|| self.missing(name))?));
                }
            }
        }
        Ok(text)
    }

    pub(crate) fn missing(&self, name: &str) -> TemplateError {
        TemplateError::Missing { name: name.to_owned(), template: self.text.clone() }
    }

    /// The name, if the template consists of one name.
    pub(crate) fn only_name(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [TemplatePiece::Name(name, _)] => Some(name),
            _ => None,
        }
    }

    /// The literal text before the first name.
    pub(crate) fn beginning(&self) -> &str {
        match self.pieces.first() {
            Some(TemplatePiece::Literal(literal)) => literal,
            _ => "",
        }
    }

    /// Whether the template consists of names only.
    fn is_bare(&self) -> bool {
        !self.pieces.is_empty() && self.pieces.iter().all(|piece| matches!(piece, TemplatePiece::Name(..)))
    }
}

/// Renders the arguments of a command: each template gives exactly one.
///
/// A value that begins with `-` is refused where it would be an argument of its own, unless a `--` before it ends the
/// options; `--name={payload.name}` is always safe.
pub fn arguments(templates: &[Template], values: &Values) -> Result<Vec<String>, TemplateError> {
    let mut arguments = Vec::with_capacity(templates.len());
    let mut options_are_over = false;
    for template in templates {
        let argument = template.render(values)?;
        if argument.contains('\0') {
            return Err(TemplateError::Nul { template: template.text.clone() });
        }
        if template.is_bare() && argument.starts_with('-') && !options_are_over {
            return Err(TemplateError::LooksLikeAnOption { template: template.text.clone() });
        }
        options_are_over |= template.text == "--";
        arguments.push(argument);
    }
    Ok(arguments)
}

/// As it is written.
impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Template").field(&self.text).finish()
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl str::FromStr for Template {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(text)
    }
}

/// Splits a text into literals and names in braces. Two literals never follow one another.
pub(crate) fn scan(what: &'static str, text: &str) -> Result<Vec<TemplatePiece>, ParseError> {
    let mut pieces = Vec::new();
    let mut literal = String::new();
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        match character {
            '{' | '}' if characters.next_if(|(_, next)| *next == character).is_some() => {
                literal.push(character);
            }
            '{' => {
                let rest = text.get(at + 1..).unwrap_or_default();
                let Some((name, _)) = rest.split_once('}') else {
                    let fault = ParseError::new(what, text, at..text.len(), "this `{` is never closed");
                    return Err(fault.help("write `{name}`, or `{{` for a brace"));
                };
                if !literal.is_empty() {
                    pieces.push(TemplatePiece::Literal(std::mem::take(&mut literal)));
                }
                let end = at + name.len() + 2;
                pieces.push(TemplatePiece::Name(name.to_owned(), at..end));
                while characters.next_if(|(next, _)| *next < end).is_some() {}
            }
            '}' => {
                return Err(ParseError::new(what, text, at..at + 1, "this `}` closes nothing")
                    .help("write `}}` for a brace"));
            }
            _ => literal.push(character),
        }
    }
    if !literal.is_empty() {
        pieces.push(TemplatePiece::Literal(literal));
    }
    Ok(pieces)
}

/// Whether a text is one identifier, or several joined by `.`.
pub(crate) fn is_path(name: &str) -> bool {
    name.split('.').all(is_identifier)
}

pub(crate) fn is_identifier(segment: &str) -> bool {
    segment.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && segment.chars().all(|character| character.is_ascii_alphanumeric() || character == '_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn templates(texts: &[&str]) -> Vec<Template> {
        texts.iter().map(|text| Template::parse(text).unwrap()).collect()
    }

    fn payload(payload: serde_json::Value) -> Values {
        Values { payload: Some(payload), ..Values::default() }
    }

    #[test]
    fn names_are_filled_in_and_braces_stay() {
        let values = Values { scope: Some("acme".to_owned()), ..payload(json!({"user": {"id": 42}})) };
        for (template, text) in [
            ("", ""),
            ("plain", "plain"),
            ("{scope}", "acme"),
            ("a {scope}-{payload.user.id} b", "a acme-42 b"),
            ("{{scope}}", "{scope}"),
            ("{{{scope}}}", "{acme}"),
            ("ü{scope}ü", "üacmeü"),
        ] {
            assert_eq!(Template::parse(template).unwrap().render(&values).as_deref(), Ok(text), "{template}");
        }
    }

    #[test]
    fn an_invalid_template_is_refused_with_the_reason() {
        for (text, span, reason) in [
            ("a {ds", 2..5, "this `{` is never closed"),
            ("a }", 2..3, "this `}` closes nothing"),
            ("{}", 0..2, "this is not a valid name"),
            ("{a b}", 0..5, "this is not a valid name"),
            ("{payload.}", 0..10, "this is not a valid name"),
        ] {
            let error = Template::parse(text).unwrap_err();
            assert_eq!((error.span(), error.reason()), (span, reason), "{text}");
        }
    }

    #[test]
    fn s11_one_element_stays_one_argument() {
        for hostile in ["; touch x", "$(touch x)", "`id`", "a\nb", "a b 'c\"", "*", "@/etc/passwd", ""] {
            let values = payload(json!({ "name": hostile }));
            let given = arguments(&templates(&["./mail", "{payload.name}", "end"]), &values).unwrap();
            assert_eq!(given, ["./mail", hostile, "end"]);
        }
    }

    #[test]
    fn s11_a_value_is_never_taken_for_an_option() {
        let values = payload(json!({ "name": "--help" }));
        let error = arguments(&templates(&["./mail", "{payload.name}"]), &values).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the value of `{payload.name}` begins with `-` and would be taken for an option: write \
             `\"--name={payload.name}\"` as one element, or put `\"--\"` before it"
        );
        for safe in [["./mail", "--name={payload.name}"].as_slice(), &["./mail", "--", "{payload.name}"]] {
            assert!(arguments(&templates(safe), &values).unwrap().last().unwrap().ends_with("--help"));
        }
        let late = templates(&["./mail", "{payload.name}", "--"]);
        assert!(arguments(&late, &values).is_err(), "a `--` behind it protects nothing");
    }

    #[test]
    fn a_nul_is_refused_in_an_argument() {
        let values = payload(json!({ "name": "a\0b" }));
        let error = arguments(&templates(&["./mail", "--name={payload.name}"]), &values).unwrap_err();
        assert!(matches!(error, TemplateError::Nul { .. }));
    }

    #[test]
    fn a_name_without_a_value_is_an_error_and_not_an_empty_text() {
        let template = Template::parse("{scope}").unwrap();
        assert!(template.render(&Values::default()).unwrap_err().to_string().contains("{scope}"));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "\\PC*|[{}a-z.]{0,12}") {
            if let Ok(template) = Template::parse(&text) {
                let _ = template.render(&Values::default());
            }
        }
    }
}
