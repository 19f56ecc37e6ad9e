//! HTTP calls of a job file.

use std::time::Duration;

use super::JobReader;
use crate::call::{Body, Call, Method, names_its_host};
use crate::project::document::{Entries, LocatedText, Value};
use crate::project::environment;
use crate::project::problem::Problem;
use crate::{Template, duration};

/// The default time to wait for a response.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Headers that belong to the connection.
const OF_THE_CONNECTION: [&str; 7] =
    ["connection", "content-length", "host", "te", "trailer", "transfer-encoding", "upgrade"];

impl JobReader<'_> {
    /// A call whose host is fixed in the file. Its names are checked together with those of effects.
    pub(super) fn call_of(&mut self, call: &Entries<'_>) -> Option<Call> {
        let written = call.text("url")?;
        let url = self.expanded(&written)?;
        if !names_its_host(&url) {
            let problem = written.wrong("the URL must begin with http:// or https:// and a host", "no host");
            let help = "write the host here, or in an environment variable; values may follow it, as in \
                        \"https://example.org/invoices/{id}\"";
            self.problems.push(problem.help(help));
            return None;
        }
        let timeout = call.text("timeout").and_then(|text| duration::parse(&text.value).ok());
        Some(Call {
            method: call.text("method").and_then(|word| word.value.parse().ok()).unwrap_or(Method::Post),
            url,
            headers: self.headers(call)?,
            json: match call.get("json") {
                Some(json) => Some(Body::of(json.json())?),
                None => None,
            },
            timeout: timeout.unwrap_or(TIMEOUT),
        })
    }

    fn headers(&mut self, call: &Entries<'_>) -> Option<Vec<(String, Template)>> {
        let table = call.get("headers").and_then(Value::table);
        let mut headers = Vec::new();
        for (name, span, value) in table.iter().flat_map(Entries::iter) {
            let is_token =
                name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte));
            let is_known = headers.iter().any(|(known, _): &(String, _)| known.eq_ignore_ascii_case(name));
            let fault = match name.to_ascii_lowercase() {
                _ if is_known => Some("this header is set twice"),
                lower if lower == "idempotency-key" => Some("this header is set by Refrain"),
                lower if OF_THE_CONNECTION.contains(&lower.as_str()) => {
                    Some("this header is set by the connection")
                }
                _ if !is_token || name.is_empty() => Some("this is not a valid header name"),
                _ => None,
            };
            if let Some(message) = fault {
                let problem = Problem::new(call.path(), span, message, "cannot be sent");
                self.problems.push(problem.help("leave it out"));
                return None;
            }
            headers.push((name.to_owned(), self.expanded(&value.text()?)?));
        }
        Some(headers)
    }

    /// A template with the environment filled in; braces in those values are literal.
    fn expanded(&self, text: &LocatedText) -> Option<Template> {
        let literal = |name: &str| {
            let value = (self.files.environment)(name).and_then(|value| value.into_string().ok());
            value.map(|value| value.replace('{', "{{").replace('}', "}}").into())
        };
        let (expanded, _) = environment::expand(&text.value, &literal);
        Template::parse(&expanded).ok().map(|template| template.written(&text.value))
    }
}
