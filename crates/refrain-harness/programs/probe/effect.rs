//! Effects: a line in the file `sent` stands for a message that has left this machine.

use std::fs;
use std::io::Write as _;
use std::time::Duration;

use refrain::core::Key;
use refrain::effects::{EffectVerb, Performed};
use refrain::{Error, NotPerformed, Once, Refrain};

use crate::{appears, directory, variable};

/// How long a caller waits for another one, and how long the receiver remembers a key.
const WAIT: Duration = Duration::from_mins(10);
const DAY: Duration = Duration::from_hours(24);

/// Executes a script once for a key, and prints the report.
pub(crate) async fn once(refrain: &Refrain, key: &str, version: &str, script: &str) -> Result<(), Error> {
    let argv = ["sh", "-c", script].map(str::to_owned).to_vec();
    let mut once = Once::new(Key::parse(key)?, argv, directory());
    once.version = version.parse().unwrap();
    once.in_doubt = variable("PROBE_POLICY").unwrap_or("hold".to_owned()).parse()?;
    once.provider_ttl = Some(DAY);
    once.wait = WAIT;
    let report = refrain.once(&once).await?;
    println!("once: {report:?}");
    Ok(())
}

/// Sends a message once for a key, and prints what is known of it. With `PROBE_ANSWER` the receiver answers with that word.
pub(crate) async fn perform(refrain: &Refrain, key: &str, version: &str) -> Result<(), Error> {
    let effect = refrain.effect(Key::parse(key)?).version(version.parse().unwrap()).wait(WAIT);
    let effect =
        effect.provider_ttl(DAY).in_doubt(variable("PROBE_POLICY").unwrap_or("hold".to_owned()).parse()?);
    let performed: Result<Performed<String>, _> = effect
        .perform(async |key| {
            send(&format!("{}@{} {}", key.key, key.version, key.idempotency_key));
            println!("sent");
            let gate = directory().join(format!("gate-{}", key.key));
            if variable("PROBE_GATED").is_some() {
                appears(&gate).await;
            }
            match variable("PROBE_ANSWER").as_deref() {
                None => Ok(format!("receipt of {}", std::process::id())),
                Some("refused") => Err(NotPerformed::refused("no such customer")),
                Some("not-sent") => Err(NotPerformed::not_sent("no such host")),
                Some(_) => Err(NotPerformed::unknown("the connection was reset")),
            }
        })
        .await;
    match performed {
        Ok(Performed { is_new: true, .. }) => println!("perform: sent"),
        Ok(_) => println!("perform: deduplicated"),
        Err(error) => println!("perform: {error}"),
    }
    Ok(())
}

/// One write, so that lines of many processes do not mix.
fn send(line: &str) {
    let file = directory().join("sent");
    let mut sent = fs::OpenOptions::new().append(true).create(true).open(file).unwrap();
    sent.write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// Decides about an effect.
pub(crate) async fn decide(refrain: &Refrain, verb: &str, name: &str) -> Result<(), Error> {
    let verb = match verb {
        "confirm" => EffectVerb::Confirm,
        "resend" => EffectVerb::Resend,
        "abandon" => EffectVerb::Abandon,
        _ => EffectVerb::Send,
    };
    let decided = refrain.decide_effect(name, verb).await?;
    println!("{name}: {}", decided.state);
    Ok(())
}
