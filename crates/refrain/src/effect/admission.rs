//! Asks for an effect until it is reserved or settled, or the caller's time is up.
//!
//! While another sender holds the effect, this only reads. It takes over from that sender if it has died, and from no other worker:
//! what became of their runs is for processes that know the jobs.

use std::time::{Duration, Instant};

use refrain_core::state::EffectState;

use crate::engine::Engine;
use crate::engine::service::{Phase, Stop};
use crate::lease::since_boot;
use crate::store::effect_reservation::{
    EffectRequest, FactRow, Holder, NotReserved, Reserved, reserve, versions,
};
use crate::store::{Result, Store};

/// How often to look at an effect that another sender holds.
const LOOK: Duration = Duration::from_millis(100);

/// Reserves an effect, and waits for at most `wait` while another sender holds it or a lower version of its fact. Also returns when
/// the last request for it began, by [`since_boot`]: the lease of a worker that was registered with it counts from then.
pub(crate) async fn admitted(
    engine: &Engine,
    request: &EffectRequest,
    holder: Holder<'_>,
    wait: Duration,
    stop: &Stop,
) -> Result<(Reserved, Duration)> {
    let mut rescuer = engine.rescuer();
    let began = Instant::now();
    loop {
        let asked = since_boot();
        let reserved = reserve(&engine.store, request, holder).await?;
        let Reserved::Not(NotReserved::Held(held)) = &reserved else { return Ok((reserved, asked)) };
        loop {
            if let Some(holder) = held.holder {
                rescuer.rescue_only(holder).await?;
            }
            if !is_held(&engine.store, &request.effect.key, held).await? {
                break;
            }
            if began.elapsed() >= wait || stop.phase() >= Phase::Draining {
                return Ok((reserved, asked));
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK.min(wait.saturating_sub(began.elapsed()))) => {}
                () = stop.draining() => {}
            }
        }
    }
}

/// Whether the same send of the same effect is still reserved.
async fn is_held(store: &Store, key: &str, held: &FactRow) -> Result<bool> {
    let versions = versions(store, key).await?;
    let now = versions.iter().find(|row| row.id == held.id);
    Ok(now.is_some_and(|now| {
        now.sends == held.sends && now.state().is_ok_and(|state| state == EffectState::Reserved)
    }))
}
