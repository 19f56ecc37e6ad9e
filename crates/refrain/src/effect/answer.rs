//! Repeats the record of an answer while the store cannot be reached: an answer that is not recorded becomes a doubt.

use std::time::Duration;

use refrain_core::state::EffectState;

use crate::lease::Lease;
use crate::store::effect_reservation::{EffectReservation, SendEnd, answer};
use crate::store::{Result, Store, StoreError};

/// The pause between two tries while the store cannot be reached.
const PAUSE: Duration = Duration::from_millis(250);

/// Records how a send ended; tries again while the store cannot be reached and the lease of the worker holds. Afterwards another process
/// may have taken over.
pub(crate) async fn recorded(
    store: &Store,
    reservation: &EffectReservation,
    end: &SendEnd,
    lease: &Lease,
) -> Result<EffectState> {
    // A file that was moved or removed would take the answer with it.
    store.is_in_place()?;
    loop {
        match answer(store, reservation, end).await {
            Err(StoreError::Database(error)) if error.is_transient() && lease.is_good() => {
                tracing::warn!(key = reservation.key, %error, "an answer could not be recorded yet");
                tokio::time::sleep(PAUSE).await;
            }
            recorded => return recorded,
        }
    }
}
