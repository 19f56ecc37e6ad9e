//! What does not belong into the tree: notes to oneself, the story of how it was made, paths of a machine.

use super::{File, Finding};

/// A text, in which files it is looked for (by ending), and what to do instead.
struct Unfit {
    text: &'static str,
    endings: &'static [&'static str],
    advice: &'static str,
}

const PROSE: &[&str] = &[".rs", ".md", ".sql", ".toml", "test"];
const CODE: &[&str] = &[".rs"];

/// Pieces are joined here, so that this file does not find itself.
const UNFIT: [Unfit; 15] = [
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
    Unfit { text: concat!("crates", ".io"), endings: PROSE, advice: "do not name hosts of registries" },
    Unfit { text: concat!("for n", "ow"), endings: &[".rs", ".md"], advice: "say what is, not how long" },
    Unfit { text: concat!("as reque", "sted"), endings: PROSE, advice: "say what is, not how it came" },
    Unfit { text: concat!("prev", "iously"), endings: &[".rs", ".md"], advice: "say what is, not what was" },
];

pub(crate) fn are_fit_to_print(files: &[File]) -> Vec<Finding> {
    files.iter().flat_map(|file| file.lines().flat_map(|(line, text)| unfit(file, line, text))).collect()
}

fn unfit(file: &File, line: usize, text: &str) -> Vec<Finding> {
    let finding = |what: String| Finding { path: file.path.clone(), line, rule: "words", what };
    let listed = UNFIT
        .iter()
        .filter(|unfit| unfit.endings.iter().any(|ending| file.is(ending)) && text.contains(unfit.text))
        .map(|unfit| finding(format!("`{}` has no place here: {}", unfit.text, unfit.advice)));
    let dated = PROSE.iter().any(|ending| file.is(ending)) && tells_its_making(text);
    let slept = file.is(".rs") && file.path.contains("/tests/") && text.contains(concat!("sle", "ep("));
    listed
        .chain(dated.then(|| {
            finding("no issue numbers and no phases: the project speaks of itself alone".to_owned())
        }))
        .chain(slept.then(|| finding("a test waits for an event, it does not sleep".to_owned())))
        .collect()
}

/// A word that counts the steps of a making, followed by its number.
fn tells_its_making(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    [concat!("iss", "ue "), concat!("pha", "se ")].iter().any(|word| {
        lower.match_indices(word).any(|(at, _)| {
            let rest = lower.get(at + word.len()..).unwrap_or_default();
            rest.trim_start_matches('#').starts_with(|c: char| c.is_ascii_digit())
        })
    })
}

#[test]
fn unfit_words_are_found() {
    for (path, text) in [
        ("a.rs", concat!("// TO", "DO: later")),
        ("a.md", concat!("see iss", "ue #12")),
        ("a.md", concat!("in pha", "se 2")),
        ("a.rs", concat!("#[al", "low(dead_code)]")),
        ("a.rs", concat!("#[ign", "ore]")),
        ("test", concat!("cd /wo", "rk/main")),
        ("crates/refrain/tests/a.rs", concat!("    tokio::time::sle", "ep(second).await;")),
    ] {
        assert_eq!(super::planted(are_fit_to_print, &[(path, text)]), [format!("{path}:1")], "{text}");
    }
    let clean = [
        ("a.rs", "#[expect(dead_code, reason = \"…\")]"),
        ("a.md", "an issue of taste, a phase of the moon"),
        ("crates/refrain/src/engine.rs", concat!("tokio::time::sle", "ep(delay)")),
    ];
    assert!(super::planted(are_fit_to_print, &clean).is_empty());
}
