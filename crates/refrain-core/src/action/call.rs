//! An HTTP call as a job file describes it, and the request that it becomes for one unit.
//!
//! A value can never choose the host: the host is written in the job file or comes from the operator's environment. In
//! a URL, values are percent-encoded, so a value cannot end a path or begin a query. A template that consists of one
//! name keeps the JSON type of its value in the body; every other template becomes a string there.
//!
//! The same values give the same bytes in every process, so a request that is sent again is the same request.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

use crate::{Template, TemplateError, Values};

words! {
    /// The HTTP method of a call.
    Method, "method" {
        /// POST
        Post = "POST",
        /// PUT
        Put = "PUT",
        /// PATCH
        Patch = "PATCH",
        /// DELETE
        Delete = "DELETE",
        /// GET
        Get = "GET",
    }
}

/// An HTTP call.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The HTTP method.
    pub method: Method,
    /// The URL, with environment variables already filled in.
    pub url: Template,
    /// The headers, with environment variables already filled in.
    pub headers: Vec<(String, Template)>,
    /// The JSON body, if the call has one.
    pub json: Option<Body>,
    /// How long to wait for a response.
    pub timeout: Duration,
}

/// A JSON value in which strings are templates.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// A string, read as a template.
    Text(Template),
    /// An array.
    List(Vec<Body>),
    /// An object.
    Object(Vec<(String, Body)>),
    /// A number, boolean or null, unchanged.
    Plain(Value),
}

/// The request that is sent.
#[derive(Clone, PartialEq, Eq)]
pub struct Request {
    /// The HTTP method.
    pub method: Method,
    /// The URL with all values filled in.
    pub url: String,
    /// The headers from the job file.
    pub headers: Vec<(String, String)>,
    /// The body as JSON.
    pub body: Option<String>,
    /// How long to wait for a response.
    pub timeout: Duration,
}

/// What a response means for the unit: done, not done, or impossible to tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// The receiver did it.
    Done,
    /// The receiver did none of it.
    NotDone,
    /// The receiver may have done it.
    InDoubt,
}

/// Maps a status code to its meaning.
///
/// A server that rejects a request has not done it. A server that failed while handling it may have finished it, and so
/// may one that redirects or reports a conflict: the conflict may be with this very request, sent before.
///
/// ```
/// use refrain_core::call::{Meaning, meaning_of};
///
/// assert_eq!(meaning_of(201, false), Meaning::Done);
/// assert_eq!(meaning_of(422, false), Meaning::NotDone);
/// assert_eq!(meaning_of(502, false), Meaning::InDoubt);
/// ```
///
/// A proxy also answers 503 when it loses its server half-way; a response with `Retry-After` was never begun.
pub fn meaning_of(status: u16, says_when_to_come_again: bool) -> Meaning {
    match status {
        200..=299 => Meaning::Done,
        409 | 499 => Meaning::InDoubt,
        307 | 308 | 400..=498 | 501 | 505 => Meaning::NotDone,
        503 if says_when_to_come_again => Meaning::NotDone,
        _ => Meaning::InDoubt,
    }
}

/// Leaves out the URL and the headers, which may hold secrets.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("body", &self.body)
            .finish_non_exhaustive()
    }
}

impl Call {
    /// Fills in the values.
    pub fn request(&self, values: &Values) -> Result<Request, TemplateError> {
        if let Some(name) =
            self.url.names().find(|name| values.text(name).is_some_and(|text| text.is_empty()))
        {
            return Err(self.url.missing(name));
        }
        let headers = self.headers.iter().map(|(name, value)| Ok((name.clone(), value.render(values)?)));
        Ok(Request {
            method: self.method,
            url: self.url.rendered(values, |value| encoded(&value))?,
            headers: headers.collect::<Result<_, TemplateError>>()?,
            body: self.json.as_ref().map(|json| json.render(values)).transpose()?,
            timeout: self.timeout,
        })
    }
}

impl Body {
    /// Reads every string as a template; `None` if one of them is not a valid template.
    pub(crate) fn of(json: Value) -> Option<Body> {
        Some(match json {
            Value::String(text) => Body::Text(Template::parse(&text).ok()?),
            Value::Array(list) => Body::List(list.into_iter().map(Body::of).collect::<Option<_>>()?),
            Value::Object(fields) => {
                let fields = fields.into_iter().map(|(name, value)| Some((name, Body::of(value)?)));
                Body::Object(fields.collect::<Option<_>>()?)
            }
            plain => Body::Plain(plain),
        })
    }

    /// Renders JSON; numbers keep their original spelling.
    fn render(&self, values: &Values) -> Result<String, TemplateError> {
        Ok(match self {
            Body::Plain(value) => value.to_string(),
            Body::Text(template) => match template.only_name() {
                Some(name) => values.json(name).ok_or_else(|| template.missing(name))?,
                None => Value::from(template.render(values)?).to_string(),
            },
            Body::List(list) => {
                let list: Result<Vec<String>, _> = list.iter().map(|body| body.render(values)).collect();
                format!("[{}]", list?.join(","))
            }
            Body::Object(fields) => {
                let field = |(name, body): &(String, Body)| {
                    Ok(format!("{}:{}", Value::from(name.as_str()), body.render(values)?))
                };
                let fields: Result<Vec<String>, TemplateError> = fields.iter().map(field).collect();
                format!("{{{}}}", fields?.join(","))
            }
        })
    }
}

/// Whether the URL names its host before the first value is filled in.
pub(crate) fn names_its_host(url: &Template) -> bool {
    let beginning = url.beginning();
    let rest = beginning.strip_prefix("https://").or_else(|| beginning.strip_prefix("http://"));
    let is_whole = url.names().next().is_none();
    rest.is_some_and(|rest| {
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        !host.is_empty() && (is_whole || host.len() < rest.len())
    })
}

/// Percent-encodes a value for use in a URL.
fn encoded(value: &str) -> String {
    let encode = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    value.bytes().map(encode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Word;
    use serde_json::json;

    fn values(unit: &str) -> Values {
        Values { unit: Some(unit.to_owned()), ds: Some("2026-06-09".to_owned()), ..Values::default() }
    }

    fn call(url: &str, json: Value) -> Call {
        Call {
            method: Method::Post,
            url: Template::parse(url).unwrap(),
            headers: vec![("X-Day".to_owned(), Template::parse("{ds}").unwrap())],
            json: Body::of(json),
            timeout: Duration::from_secs(30),
        }
    }

    #[test]
    fn a_single_name_keeps_its_json_type_and_equal_values_give_equal_bytes() {
        let call = call(
            "https://example.org/{id}?day={ds}",
            json!({"id": "{id}", "text": "no. {id}", "on": "{ds}", "tags": ["{tags}", 1.5, null], "none": "{none}"}),
        );
        let unit = r#"{"id": 12345678901234567890123, "tags": ["a", {"b": 1e3}], "none": null}"#;
        let request = call.request(&values(unit)).unwrap();
        assert_eq!(request.url, "https://example.org/12345678901234567890123?day=2026-06-09");
        assert_eq!(request.headers, [("X-Day".to_owned(), "2026-06-09".to_owned())]);
        assert_eq!(
            request.body.as_deref(),
            Some(
                r#"{"id":12345678901234567890123,"none":null,"on":"2026-06-09","tags":[["a", {"b": 1e3}],1.5,null],"text":"no. 12345678901234567890123"}"#
            )
        );
        assert_eq!(call.request(&values(unit)), Ok(request));
        let missing = call.request(&values(r#"{"id": 1, "none": 2}"#)).unwrap_err();
        assert!(missing.to_string().contains("{tags}"), "{missing}");
    }

    #[test]
    fn s15_a_value_never_chooses_the_host() {
        for (url, is_sound) in [
            ("https://example.org", true),
            ("https://example.org/{id}", true),
            ("https://example.org?id={id}", true),
            ("http://127.0.0.1:80/", true),
            ("{url}", false),
            ("https://{host}/", false),
            ("https://example.org{id}", false),
            ("https://example.{tld}/x", false),
            ("https:///{id}", false),
            ("ftp://example.org/{id}", false),
            ("example.org/{id}", false),
        ] {
            assert_eq!(names_its_host(&Template::parse(url).unwrap()), is_sound, "{url}");
        }
        let call = call("https://example.org/{id}/end", Value::Null);
        for hostile in ["@evil.org", "/../x", "?a=b", "#x", "a b", "\\", "%2e%2e", "ü", "\r\nHost: x"] {
            let unit = json!({ "id": hostile }).to_string();
            let request = call.request(&values(&unit)).unwrap();
            let between =
                request.url.strip_prefix("https://example.org/").and_then(|url| url.strip_suffix("/end"));
            let between = between.unwrap();
            assert!(!between.contains(['/', '?', '#', '@', ' ', '\\', '\r', '\n']), "{hostile}: {between}");
        }
    }

    #[test]
    fn every_status_has_one_meaning() {
        for (statuses, meaning) in [
            (vec![200, 201, 202, 204], Meaning::Done),
            (vec![307, 308, 400, 401, 403, 404, 408, 410, 413, 422, 425, 429, 501], Meaning::NotDone),
            (vec![100, 301, 302, 303, 304, 409, 499, 500, 502, 503, 504, 520, 599], Meaning::InDoubt),
        ] {
            for status in statuses {
                assert_eq!(meaning_of(status, false), meaning, "{status}");
            }
        }
        assert_eq!(meaning_of(503, true), Meaning::NotDone);
        assert_eq!(meaning_of(502, true), Meaning::InDoubt);
        assert!(Method::ALL.iter().all(|method| method.name() == method.meaning()));
    }
}
