//! The golden vectors: a derived value never changes, byte for byte.

use refrain_core::encoding::{Domain, Parts};
use refrain_core::{
    Fingerprint, IdempotencyKey, JobName, Key, KeyPart, KeyTemplate, ProjectName, RunId, RunKey, SurrogateKey,
};
use serde::Deserialize;

#[derive(Deserialize)]
struct Vectors {
    encodings: Vec<Encoding>,
    runs: Vec<Run>,
    effects: Vec<Effect>,
    surrogates: Vec<Surrogate>,
    keys: Vec<PartsOfKey>,
    units: Vec<Unit>,
}

#[derive(Deserialize)]
struct Encoding {
    domain: String,
    parts: Vec<Option<String>>,
    bytes: String,
    sha256: String,
}

#[derive(Deserialize)]
struct Run {
    project: String,
    job: String,
    key: String,
    id: String,
}

#[derive(Deserialize)]
struct Effect {
    project: String,
    key: String,
    version: u32,
    id: String,
}

#[derive(Deserialize)]
struct Surrogate {
    parts: Vec<Option<String>>,
    id: String,
}

#[derive(Deserialize)]
struct PartsOfKey {
    parts: Vec<String>,
    key: String,
}

#[derive(Deserialize)]
struct Unit {
    json: String,
    fields: Option<Vec<String>>,
    fingerprint: String,
}

fn vectors() -> Vectors {
    serde_json::from_str(include_str!("../vectors/vectors.json")).unwrap()
}

fn bytes(hex: &str) -> Vec<u8> {
    let pairs = hex.as_bytes().chunks(2).map(|pair| str::from_utf8(pair).unwrap());
    pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

fn borrowed(parts: &[Option<String>]) -> Vec<Option<&str>> {
    parts.iter().map(Option::as_deref).collect()
}

#[test]
fn m18_encodings_are_those_of_the_other_implementation() {
    for vector in vectors().encodings {
        let domain = Domain::ALL.into_iter().find(|domain| domain.name() == vector.domain).unwrap();
        let parts = Parts::of(&borrowed(&vector.parts)).unwrap();
        assert_eq!(parts.encode(domain).unwrap(), bytes(&vector.bytes), "{:?}", vector.parts);
        assert_eq!(parts.sha256(domain).unwrap().to_vec(), bytes(&vector.sha256), "{:?}", vector.parts);
    }
}

#[test]
fn m18_every_domain_has_a_vector() {
    for domain in Domain::ALL {
        assert!(vectors().encodings.iter().any(|vector| vector.domain == domain.name()), "{domain:?}");
    }
}

#[test]
fn m18_run_ids_are_those_of_the_other_implementation() {
    for Run { project, job, key, id } in vectors().runs {
        let (project, job) = (ProjectName::parse(&project).unwrap(), JobName::parse(&job).unwrap());
        assert_eq!(RunId::of(&project, &job, &RunKey::queued(Key::parse(&key).unwrap())).to_string(), id);
    }
}

#[test]
fn m18_idempotency_keys_are_those_of_the_other_implementation() {
    for Effect { project, key, version, id } in vectors().effects {
        let (project, key) = (ProjectName::parse(&project).unwrap(), Key::parse(&key).unwrap());
        assert_eq!(IdempotencyKey::of(&project, &key, version).to_string(), id);
    }
}

#[test]
fn m18_surrogate_keys_are_those_of_the_other_implementation() {
    for Surrogate { parts, id } in vectors().surrogates {
        assert_eq!(SurrogateKey::of(&borrowed(&parts)).unwrap().to_string(), id, "{parts:?}");
    }
}

#[test]
fn m18_keys_are_those_of_the_other_implementation_made_of_parts_or_by_template() {
    for PartsOfKey { parts, key } in vectors().keys {
        let dynamic: Vec<&dyn KeyPart> = parts.iter().map(|part| part as &dyn KeyPart).collect();
        assert_eq!(Key::from_parts(&dynamic).unwrap().as_str(), key);

        let template = KeyTemplate::parse(&vec!["{part}"; parts.len()].join(":")).unwrap();
        let mut values = parts.iter().cloned();
        assert_eq!(template.render(|_| values.next()).unwrap().as_str(), key);
    }
}

#[test]
fn m18_fingerprints_are_those_of_the_other_implementation() {
    for Unit { json, fields, fingerprint } in vectors().units {
        let actual = match &fields {
            None => Fingerprint::of_json(&json),
            Some(fields) => {
                Fingerprint::of_fields(&json, &fields.iter().map(String::as_str).collect::<Vec<_>>())
            }
        };
        assert_eq!(actual.unwrap().to_string(), fingerprint, "{json} {fields:?}");
    }
}
