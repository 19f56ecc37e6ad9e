//! Text that does not belong in the tree: notes to oneself, the story of how it was made, paths of a machine.

use super::{File, Finding};

/// A text, the files in which it is searched (by ending), and what to do instead.
struct Unfit {
    text: &'static str,
    endings: &'static [&'static str],
    advice: &'static str,
}

const PROSE: &[&str] = &[".rs", ".md", ".sql", ".toml", ".py", ".sh", "test", ".ci/run"];
const CODE: &[&str] = &[".rs"];

/// Pieces are joined here, so that this file does not find itself.
const UNFIT: [Unfit; 16] = [
    Unfit { text: concat!("TO", "DO"), endings: PROSE, advice: "do it, or leave it out" },
    Unfit { text: concat!("FIX", "ME"), endings: PROSE, advice: "fix it" },
    Unfit { text: concat!("XX", "X"), endings: CODE, advice: "say it in words" },
    Unfit { text: concat!("dbg", "!("), endings: CODE, advice: "delete it" },
    Unfit { text: concat!("todo", "!("), endings: CODE, advice: "do it" },
    Unfit { text: concat!("unimplemented", "!("), endings: CODE, advice: "refuse by name, with an error" },
    Unfit { text: concat!("#[ign", "ore"), endings: CODE, advice: "a test that does not run proves nothing" },
    Unfit { text: concat!("#[al", "low("), endings: CODE, advice: "write #[expect(…, reason = \"…\")]" },
    Unfit {
        text: concat!("#![al", "low("), endings: CODE, advice: "write #![expect(…, reason = \"…\")]"
    },
    Unfit {
        text: concat!("/wo", "rk/"),
        endings: PROSE,
        advice: "a path of a machine means nothing elsewhere",
    },
    Unfit {
        text: concat!("/ro", "ot/"),
        endings: PROSE,
        advice: "a path of a machine means nothing elsewhere",
    },
    Unfit {
        text: concat!("/tmp/", "wt"),
        endings: PROSE,
        advice: "a path of a machine means nothing elsewhere",
    },
    Unfit { text: concat!("crates", ".io"), endings: PROSE, advice: "do not name hosts of registries" },
    Unfit { text: concat!("for n", "ow"), endings: &[".rs", ".md"], advice: "say what is, not how long" },
    Unfit { text: concat!("as reque", "sted"), endings: PROSE, advice: "say what is, not how it came" },
    Unfit { text: concat!("prev", "iously"), endings: &[".rs", ".md"], advice: "say what is, not what was" },
];

pub(crate) fn are_fit_to_print(files: &[File]) -> Vec<Finding> {
    files.iter().flat_map(unfit).collect()
}

fn unfit(file: &File) -> Vec<Finding> {
    let finding = |line, what: String| Finding { path: file.path.clone(), line, rule: "words", what };
    let unfit: Vec<&Unfit> =
        UNFIT.iter().filter(|unfit| unfit.endings.iter().any(|ending| file.is(ending))).collect();
    let is_prose = PROSE.iter().any(|ending| file.is(ending));
    let mut is_test = file.path.contains("/tests/");
    let mut findings = Vec::new();
    for (line, text) in file.lines() {
        // By custom the tests of a module are at its end.
        is_test |= text.trim_start().starts_with("#[cfg(test)]");
        for unfit in unfit.iter().filter(|unfit| text.contains(unfit.text)) {
            findings.push(finding(line, format!("`{}` has no place here: {}", unfit.text, unfit.advice)));
        }
        if is_prose && tells_its_making(text) {
            let what = "no issue numbers and no phases: the project speaks of itself alone";
            findings.push(finding(line, what.to_owned()));
        }
        if is_test && file.is(".rs") && text.contains(concat!("sle", "ep(")) {
            findings.push(finding(line, "a test waits for an event, it does not sleep".to_owned()));
        }
    }
    findings
}

/// A word that counts the steps of development, followed by its number; or a link to a tracker.
fn tells_its_making(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let numbered = [concat!("iss", "ue "), concat!("pha", "se "), concat!("(", "#")].iter().any(|word| {
        lower.match_indices(word).any(|(at, _)| {
            let rest = lower.get(at + word.len()..).unwrap_or_default();
            rest.trim_start_matches('#').starts_with(|c: char| c.is_ascii_digit())
        })
    });
    numbered || lower.contains(concat!("/iss", "ues/")) || lower.contains(concat!("/pu", "ll/"))
}

#[test]
fn unfit_words_are_found() {
    for (path, text) in [
        ("a.rs", concat!("// TO", "DO: later")),
        ("a.md", concat!("see iss", "ue #12")),
        ("a.md", concat!("in pha", "se 2")),
        ("a.rs", concat!("#[al", "low(dead_code)]")),
        ("a.rs", concat!("#[ign", "ore]")),
        ("a.md", concat!("as was said (", "#12)")),
        ("test", concat!("cd /wo", "rk/main")),
        ("crates/refrain/tests/a.rs", concat!("    tokio::time::sle", "ep(second).await;")),
    ] {
        assert_eq!(super::planted(are_fit_to_print, &[(path, text)]), [format!("{path}:1")], "{text}");
    }
    let slept = concat!("//! Why.\nfn f() {}\n#[cfg(test)]\nmod tests { thread::sle", "ep(second); }\n");
    assert_eq!(super::planted(are_fit_to_print, &[("crates/refrain/src/a.rs", slept)]).len(), 1);
    let clean = [
        ("a.rs", "#[expect(dead_code, reason = \"…\")]"),
        ("a.md", "an issue of taste, a phase of the moon, `welcome-email#42`, # 1. Part"),
        ("crates/refrain/src/engine.rs", concat!("tokio::time::sle", "ep(delay)")),
    ];
    assert!(super::planted(are_fit_to_print, &clean).is_empty());
}
