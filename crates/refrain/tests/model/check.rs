//! Runs a model through the checker and evaluates the result.
//!
//! A weakened protocol must break the property that is named, not just any: a counterexample elsewhere would mean
//! that the model is wrong, not that the guard is needed.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::hash::Hash;

use stateright::{Checker as _, Expectation, HasDiscoveries, Model};

/// The tests must be quick on a machine with two cores.
const THREADS: usize = 2;

/// The bounds of the search.
pub(crate) fn chosen<B>(usual: B, wide: B) -> B {
    if std::env::var_os("REFRAIN_FULL").is_some() { wide } else { usual }
}

/// Every state within the bounds keeps all promises, and every state that should be reachable is.
pub(crate) fn holds<M>(model: M, title: &str)
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync,
    M::Action: Clone + Debug + PartialEq,
{
    let checker =
        model.checker().threads(THREADS).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    let (states, depth) = (checker.unique_state_count(), checker.max_depth());
    eprintln!("{title}: holds in {states} states, up to {depth} steps deep");
    checker.assert_properties();
}

/// The named promise has a counterexample, which is printed; it need not be the shortest.
pub(crate) fn breaks<M>(model: M, title: &str, promise: &'static str)
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync,
    M::Action: Clone + Debug + PartialEq,
{
    let is_kept = model.property(promise).condition;
    let enough = HasDiscoveries::AnyOf(BTreeSet::from([promise]));
    let checker = model.checker().finish_when(enough).spawn_bfs().join();
    let states = checker.unique_state_count();
    let path = checker.discovery(promise);
    let path = path.unwrap_or_else(|| panic!("{title}: no counterexample in {states} states"));
    // The checker may continue for a while after the first fault; the history ends there.
    let history = path.into_vec().into_iter().take_while(|(state, _)| is_kept(checker.model(), state));
    let steps: Vec<_> =
        history.filter_map(|(_, action)| action).map(|action| format!("{action:?}")).collect();
    eprintln!("{title}: breaks \"{promise}\" after {} steps:\n  {}", steps.len(), steps.join(" · "));
}

/// The named promise breaks, and in all states within the bounds no other does.
pub(crate) fn breaks_only<M>(model: M, title: &str, promise: &'static str)
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync,
    M::Action: Clone + Debug + PartialEq,
{
    let promises: Vec<_> = model
        .properties()
        .iter()
        .filter(|one| one.expectation == Expectation::Always)
        .map(|one| one.name)
        .collect();
    let checker = model.checker().threads(THREADS).spawn_bfs().join();
    let broken: Vec<_> = promises.into_iter().filter(|one| checker.discovery(one).is_some()).collect();
    eprintln!("{title}: breaks only {broken:?} in {} states", checker.unique_state_count());
    assert_eq!(broken, [promise]);
}

/// A table of tests. A line is one test: `name: [removed guards] in BOUNDS breaks PROMISE;` or `… holds;`.
macro_rules! protocol {
    ($model:ident: $($name:ident: [$($guard:ident),*] in $bounds:ident $verdict:ident $($promise:ident)?;)+) => {
        $(#[test]
        fn $name() {
            let model = $model { bounds: $bounds, without: &[$(Guard::$guard),*] };
            $crate::check::$verdict(model, stringify!($name) $(, $promise)?);
        })+
    };
}
pub(crate) use protocol;
