//! Derived ids: the same again, and never one kind for another.

use proptest::prelude::*;
use refrain_core::encoding::EncodingError;
use refrain_core::{IdempotencyKey, JobName, Key, ProjectName, RunId, RunKey, SurrogateKey};

proptest! {
    #[test]
    fn m18_a_printed_id_can_be_parsed(part in any::<String>()) {
        let id = SurrogateKey::of(&[Some(&part)]).unwrap();
        prop_assert_eq!(id.to_string().parse(), Ok(id));
        prop_assert_eq!(id.to_string().to_uppercase().parse(), Ok(id));
        let number = u128::from_be_bytes(id.to_bytes());
        prop_assert_eq!(id.to_string().replace('-', ""), format!("{number:032x}"));
    }

    #[test]
    fn m18_an_id_is_a_uuid_of_version_8(part in any::<String>()) {
        let bytes = SurrogateKey::of(&[Some(&part)]).unwrap().to_bytes();
        prop_assert_eq!(bytes[6] >> 4, 8);
        prop_assert_eq!(bytes[8] >> 6, 0b10);
    }

    #[test]
    fn f37_only_version_8_and_its_variant_are_read(number in any::<u64>(), version in 0..16, variant in 0..16) {
        let text = format!("{:08x}-0123-{version:x}456-{variant:x}789-{:012x}", number >> 32, number & 0xffff_ffff);
        prop_assert_eq!(text.parse::<RunId>().is_ok(), version == 8 && (8..12).contains(&variant), "{}", text);
    }

    #[test]
    fn f37_any_text_is_an_id_or_an_error(text in prop_oneof![any::<String>(), "[0-9a-f+-]{32,36}"]) {
        if let Ok(id) = text.parse::<RunId>() {
            prop_assert_eq!(id.to_string(), text.to_lowercase());
        }
    }
}

#[test]
fn i13_the_same_parts_are_another_id_in_each_kind() {
    let (project, job, key) =
        (ProjectName::parse("shop").unwrap(), JobName::parse("sync").unwrap(), Key::parse("7").unwrap());
    let run = RunId::of(&project, &job, &RunKey::queued(key.clone())).to_bytes();
    let effect = IdempotencyKey::of(&project, &Key::parse("sync").unwrap(), 7).to_bytes();
    let row = SurrogateKey::of(&[Some("shop"), Some("sync"), Some("7")]).unwrap().to_bytes();
    assert_ne!(run, effect);
    assert_ne!(effect, row);
    assert_ne!(row, run);
}

#[test]
fn m18_a_new_version_of_an_effect_is_a_new_key_and_a_second_attempt_is_not() {
    let (project, key) =
        (ProjectName::parse("shop").unwrap(), Key::parse("notify:new-invoice:INV-7").unwrap());
    let first = IdempotencyKey::of(&project, &key, 1);
    assert_eq!(first, IdempotencyKey::of(&project, &key, 1));
    assert_ne!(first, IdempotencyKey::of(&project, &key, 2));
}

#[test]
fn a_row_without_a_natural_key_gets_no_surrogate() {
    assert_eq!(SurrogateKey::of(&[]), Err(EncodingError::NoParts));
}

#[test]
fn an_id_that_is_not_derived_is_refused() {
    for text in [
        "",
        "00000000-0000-4000-8000-000000000000",
        "00000000-0000-8000-0000-000000000000",
        "00000000000080008000000000000000",
        "0000000-00000-8000-8000-000000000000",
        "+0000000-0000-8000-8000-000000000000",
        "{00000000-0000-8000-8000-000000000000}",
        "00000000-0000-8000-8000-0000000000000",
    ] {
        assert!(text.parse::<RunId>().is_err(), "{text}");
    }
    assert!("00000000-0000-8000-8000-000000000000".parse::<RunId>().is_ok());
}
