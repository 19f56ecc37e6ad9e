//! Exceptions from the rules, with reasons.

use super::Finding;

/// The rule, the file, the reason.
const EXCEPTIONS: [(&str, &str, &str); 0] = [];

/// Removes the excepted findings, and adds one for each exception that excepts nothing.
pub(crate) fn apply(findings: Vec<Finding>) -> Vec<Finding> {
    bend(findings, &EXCEPTIONS)
}

fn bend(mut findings: Vec<Finding>, exceptions: &[(&'static str, &str, &str)]) -> Vec<Finding> {
    for (rule, path, reason) in exceptions {
        let before = findings.len();
        findings.retain(|finding| finding.rule != *rule || finding.path != *path);
        if findings.len() == before {
            let what = format!("the exception \"{reason}\" is not needed: delete it");
            findings.push(Finding { path: (*path).to_owned(), line: 1, rule, what });
        }
    }
    findings
}

#[test]
fn an_exception_takes_out_its_own_findings_and_no_others() {
    let finding =
        |path: &str, rule| Finding { path: path.to_owned(), line: 1, rule, what: "too long".to_owned() };
    let all = || vec![finding("a.rs", "length"), finding("b.rs", "length"), finding("a.rs", "words")];
    assert_eq!(bend(all(), &[("length", "a.rs", "a table")]), all()[1..]);
    assert_eq!(bend(all(), &[("length", "c.rs", "a table")]).len(), 4, "one that is not needed is a finding");
}
