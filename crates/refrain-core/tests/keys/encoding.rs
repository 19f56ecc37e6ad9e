//! The canonical encoding can be read back, so that no two lists of parts share one.

use proptest::prelude::*;
use refrain_core::encoding::{Domain, EncodingError, PARTS_BYTES_MAX, Parts};

/// Reads an encoding by the documented format; `None` if it is not one.
fn decode(bytes: &[u8]) -> Option<(String, Vec<Option<String>>)> {
    fn counted(bytes: &mut &[u8]) -> Option<usize> {
        let (head, rest) = bytes.split_first_chunk()?;
        *bytes = rest;
        usize::try_from(u32::from_be_bytes(*head)).ok()
    }
    fn text(bytes: &mut &[u8]) -> Option<String> {
        let length = counted(bytes)?;
        let (text, rest) = bytes.split_at_checked(length)?;
        *bytes = rest;
        String::from_utf8(text.to_vec()).ok()
    }

    let mut rest = bytes;
    let domain = text(&mut rest)?;
    let mut parts = Vec::new();
    for _ in 0..counted(&mut rest)? {
        let (tag, after) = rest.split_first()?;
        rest = after;
        parts.push(match tag {
            0 => None,
            1 => Some(text(&mut rest)?),
            _ => return None,
        });
    }
    rest.is_empty().then_some((domain, parts))
}

fn borrowed(parts: &[Option<String>]) -> Vec<Option<&str>> {
    parts.iter().map(Option::as_deref).collect()
}

fn part_list() -> impl Strategy<Value = Vec<Option<String>>> {
    prop::collection::vec(prop::option::of(any::<String>()), 1..6)
}

fn domain() -> impl Strategy<Value = Domain> {
    prop::sample::select(Domain::ALL.to_vec())
}

proptest! {
    #[test]
    fn i13_an_encoding_tells_its_parts_and_its_domain(parts in part_list(), domain in domain()) {
        let encoded = Parts::of(&borrowed(&parts)).unwrap().encode(domain).unwrap();
        prop_assert_eq!(decode(&encoded), Some((domain.name().to_owned(), parts)));
    }

    #[test]
    fn f36_moving_a_border_between_parts_changes_the_hash(
        text in "[ab:]{1,6}", one in 0_usize..7, other in 0_usize..7,
    ) {
        let split_at = |at: usize| {
            let (left, right) = text.split_at(at.min(text.len()));
            Parts::of(&[Some(left), Some(right)]).unwrap().sha256(Domain::Surrogate).unwrap()
        };
        prop_assert_eq!(split_at(one) == split_at(other), one.min(text.len()) == other.min(text.len()));
    }

    #[test]
    fn i13_the_same_parts_in_two_domains_are_two_hashes(
        parts in part_list(), one in domain(), other in domain(),
    ) {
        let parts = Parts::of(&borrowed(&parts)).unwrap();
        prop_assert_eq!(parts.sha256(one) == parts.sha256(other), one == other);
    }
}

#[test]
fn i13_null_is_neither_the_empty_text_nor_absent() {
    let hash = |parts: &[Option<&str>]| Parts::of(parts).unwrap().sha256(Domain::Surrogate).unwrap();
    let three = [hash(&[Some("a"), None]), hash(&[Some("a"), Some("")]), hash(&[Some("a")])];
    assert_ne!(three[0], three[1]);
    assert_ne!(three[1], three[2]);
    assert_ne!(three[0], three[2]);
}

#[test]
fn what_is_too_long_is_refused_and_never_cut() {
    let longest = "x".repeat(PARTS_BYTES_MAX - 5);
    let mut parts = Parts::of(&[Some(&longest)]).unwrap();
    assert_eq!(parts.push(None), Err(EncodingError::TooLong { bytes: PARTS_BYTES_MAX + 1 }));
    assert_eq!(parts, Parts::of(&[Some(&longest)]).unwrap(), "a refused part leaves no trace");
}

#[test]
fn no_parts_have_no_hash() {
    assert_eq!(Parts::new().sha256(Domain::Surrogate), Err(EncodingError::NoParts));
}
