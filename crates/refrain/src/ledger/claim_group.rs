//! Single claims, committed together: a claim that arrives while one transaction is being written goes into the next.
//!
//! One member never fails the others. A run that was taken over gets an error and is left out; if a group fails for a reason
//! of no particular member, its members go one by one. A claim of a key that another open transaction holds waits apart
//! from the group.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use refrain_core::state::{Refusal, UnitEvent};
use refrain_core::{JobName, Key, ProjectName};
use tokio::sync::{mpsc, oneshot};

use super::claim::{Claim, PriorClaimRow, second_claim};
use super::judge::ABSENT;
use super::{LedgerError, Result, catalog, unit_state};
use crate::database::gather::gather;
use crate::database::statement::Rows;
use crate::database::{Database, DatabaseError, Repeats, Transaction, place, still_unknown};

/// The most claims in one transaction.
const GROUP: usize = 1_000;
/// How often a group is written again because of a lock before it is split.
const BUSY_MAX: u32 = 2;

/// The attempt that claims.
#[derive(Debug, Clone)]
pub(crate) struct Claimant {
    pub(crate) job: JobName,
    pub(crate) run: String,
    pub(crate) attempt: i32,
    pub(crate) nonce: i64,
}

/// A key to claim.
#[derive(Debug, Clone)]
pub(crate) struct ClaimRequest {
    pub(crate) ledger: i64,
    pub(crate) key: Key,
    pub(crate) fingerprint: Option<i64>,
    pub(crate) version: u32,
    /// `None` for a claim without a run, which has no fence.
    pub(crate) claimant: Option<Claimant>,
}

struct PendingClaim {
    request: ClaimRequest,
    /// When the database recorded it, if known.
    recorded_at: Option<i64>,
    answer: oneshot::Sender<Result<Claim>>,
}

/// Collects the single claims of one database.
#[derive(Debug, Clone)]
pub(crate) struct Claims {
    database: Database,
    project: ProjectName,
    sender: Arc<Mutex<Option<mpsc::Sender<PendingClaim>>>>,
}

impl Claims {
    pub(crate) fn new(database: Database, project: ProjectName) -> Claims {
        Claims { database, project, sender: Arc::default() }
    }

    /// Claims a key, and returns when the claim is committed.
    pub(crate) async fn claim(&self, request: ClaimRequest) -> Result<Claim> {
        let (answer, answered) = oneshot::channel();
        // If the writer dies before it answers, the claim may have been written.
        let gone =
            || LedgerError::Database(DatabaseError::Unknown("the writer of claims has gone".to_owned()));
        self.sender().send(PendingClaim { request, recorded_at: None, answer }).await.map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }

    /// The channel to the writer, which ends with its runtime and is started again in the next one.
    fn sender(&self) -> mpsc::Sender<PendingClaim> {
        let mut sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        match &*sender {
            Some(sender) if !sender.is_closed() => sender.clone(),
            _ => {
                let (fresh, receiver) = mpsc::channel(GROUP);
                tokio::spawn(write(self.database.clone(), self.project.clone(), receiver));
                sender.insert(fresh).clone()
            }
        }
    }
}

async fn write(database: Database, project: ProjectName, mut pending: mpsc::Receiver<PendingClaim>) {
    let (sender, waiting) = mpsc::channel(GROUP);
    tokio::spawn(wait(database.clone(), project.clone(), waiting));
    let mut group = Vec::with_capacity(GROUP);
    while gather(&mut pending, &mut group, GROUP).await {
        for blocked in settle(&database, &project, std::mem::take(&mut group)).await {
            drop(sender.send(blocked).await);
        }
    }
}

/// Claims keys that other open transactions hold, one after another, until each is answered.
async fn wait(database: Database, project: ProjectName, mut waiting: mpsc::Receiver<PendingClaim>) {
    let mut blocked = Vec::new();
    while waiting.recv_many(&mut blocked, GROUP).await > 0 {
        while !blocked.is_empty() {
            for pending in std::mem::take(&mut blocked) {
                if !pending.answer.is_closed() {
                    blocked.extend(settle(&database, &project, vec![pending]).await);
                }
            }
            while let Ok(pending) = waiting.try_recv() {
                blocked.push(pending);
            }
        }
    }
}

/// Answers every member of a group except those whose key another open transaction holds; returns those.
async fn settle(
    database: &Database,
    project: &ProjectName,
    mut members: Vec<PendingClaim>,
) -> Vec<PendingClaim> {
    let (mut again, mut unknown) = (0, None);
    let failure = loop {
        match written(database, project, &mut members).await {
            Ok(claims) => {
                for (pending, claim) in members.into_iter().zip(claims) {
                    // The caller need not wait for the answer: the claim is committed.
                    let _ = pending.answer.send(claim);
                }
                return Vec::new();
            }
            Err(DatabaseError::Busy(_)) if again >= BUSY_MAX && !database.is_sqlite() => {
                if members.len() == 1 {
                    return members;
                }
                let half = members.len().div_ceil(2);
                return parted(database, project, members, half).await;
            }
            Err(error) if error.is_worth_a_retry() && again < Repeats::MAX => {
                if let DatabaseError::Unknown(what) = error {
                    unknown = Some(what);
                }
                again += 1;
            }
            Err(error) => break still_unknown(error, unknown),
        }
    };
    if members.len() > 1 && !failure.is_transient() {
        return parted(database, project, members, 1).await;
    }
    let is_unknown = matches!(failure, DatabaseError::Unknown(_));
    let mut failure = Some(failure);
    for pending in members {
        let what = || "its group was not written".to_owned();
        let other = || if is_unknown { DatabaseError::Unknown(what()) } else { DatabaseError::Lost(what()) };
        let _ = pending.answer.send(Err(failure.take().unwrap_or_else(other).into()));
    }
    Vec::new()
}

/// Writes a group in smaller groups.
async fn parted(
    database: &Database,
    project: &ProjectName,
    mut members: Vec<PendingClaim>,
    size: usize,
) -> Vec<PendingClaim> {
    let mut blocked = Vec::new();
    while !members.is_empty() {
        let rest = members.split_off(size.min(members.len()));
        blocked.extend(Box::pin(settle(database, project, members)).await);
        members = rest;
    }
    blocked
}

#[derive(sqlx_macros::FromRow)]
struct Known {
    ledger: i64,
    key: String,
    at: i64,
    fingerprint: Option<i64>,
    attempt: Option<i32>,
    nonce: Option<i64>,
    fence: Option<i64>,
    status: String,
    run: Option<String>,
}

impl Known {
    fn second_claim(&self, key: &Key, fingerprint: Option<i64>) -> Result<Claim> {
        second_claim(
            key,
            fingerprint,
            &PriorClaimRow {
                at: self.at,
                fingerprint: self.fingerprint,
                status: self.status.clone(),
                run: self.run.clone(),
            },
        )
    }
}

/// Writes a group in one transaction. Returns the answer to each member.
async fn written(
    database: &Database,
    project: &ProjectName,
    members: &mut [PendingClaim],
) -> std::result::Result<Vec<Result<Claim>>, DatabaseError> {
    let mut transaction = database.write_briefly().await?;
    let fences = raise_many(&mut transaction, project, members).await?;
    let sound: Vec<&PendingClaim> = members.iter().filter(|pending| !pending.is_fenced(&fences)).collect();
    let mut fresh = match claim_many(&mut transaction, &fences, &sound).await? {
        Ok(fresh) => fresh,
        Err(refusal) => return Ok(members.iter().map(|_| Err(refusal.clone().into())).collect()),
    };
    // Of two claims of the same key, the first gets it.
    let times: Vec<Option<i64>> = members
        .iter()
        .map(|pending| if pending.is_fenced(&fences) { None } else { fresh.remove(&pending.name()) })
        .collect();
    for (pending, at) in members.iter_mut().zip(&times) {
        pending.recorded_at = at.or(pending.recorded_at);
    }
    let late = members.iter().zip(&times).filter(|(pending, at)| at.is_none() && !pending.is_fenced(&fences));
    let late: Vec<&PendingClaim> = late.map(|(pending, _)| pending).collect();
    let known = past_many(&mut transaction, &late).await?;
    transaction.commit(place!("claims")).await?;
    let answers = members.iter().zip(times).map(|(pending, at)| match at {
        Some(_) => Ok(Claim::Fresh),
        None => pending.answer(&fences, known.get(&pending.name())),
    });
    Ok(answers.collect())
}

/// The fences by job and run: the number of the attempt, and the nonce of its claim.
type Fences = HashMap<Name, (i64, Height)>;
type Name = (String, String);
type Height = (i32, i64);

impl PendingClaim {
    fn name(&self) -> (i64, String) {
        (self.request.ledger, self.request.key.to_string())
    }

    /// The fence of the claimant, if it is as high as it should be.
    fn fence(&self, fences: &Fences) -> Option<i64> {
        let Claimant { job, run, attempt, nonce } = self.request.claimant.as_ref()?;
        let (fence, height) = fences.get(&(job.to_string(), run.clone()))?;
        (*height == (*attempt, *nonce)).then_some(*fence)
    }

    fn is_fenced(&self, fences: &Fences) -> bool {
        self.request.claimant.is_some() && self.fence(fences).is_none()
    }

    fn attempt(&self) -> Option<i32> {
        self.request.claimant.as_ref().map(|claimant| claimant.attempt)
    }

    fn nonce(&self) -> Option<i64> {
        self.request.claimant.as_ref().map(|claimant| claimant.nonce)
    }

    /// The answer to a claim that did not get the key in this transaction.
    fn answer(&self, fences: &Fences, known: Option<&Known>) -> Result<Claim> {
        if self.is_fenced(fences) {
            let attempt = u64::try_from(self.attempt().unwrap_or_default()).unwrap_or_default();
            return Err(LedgerError::Fenced { attempt });
        }
        let Some(known) = known else { return Err(LedgerError::Contended) };
        // Claimed in an earlier transaction whose answer was lost.
        let is_own = self.recorded_at == Some(known.at)
            && known.fence == self.fence(fences)
            && known.attempt == self.attempt()
            && known.nonce == self.nonce();
        if is_own {
            Ok(Claim::Fresh)
        } else {
            known.second_claim(&self.request.key, self.request.fingerprint)
        }
    }
}

async fn raise_many(
    transaction: &mut Transaction,
    project: &ProjectName,
    members: &[PendingClaim],
) -> std::result::Result<Fences, DatabaseError> {
    let mut highest: BTreeMap<Name, Height> = BTreeMap::new();
    let claimants = members.iter().filter_map(|pending| pending.request.claimant.as_ref());
    for Claimant { job, run, attempt, nonce } in claimants {
        let height = highest.entry((job.to_string(), run.clone())).or_default();
        *height = (*height).max((*attempt, *nonce));
    }
    if highest.is_empty() {
        return Ok(Fences::new());
    }
    let named = |fences: &[(&Name, &Height)]| {
        Rows::default()
            .texts(fences.iter().map(|((job, _), _)| job.clone()))
            .texts(fences.iter().map(|((_, run), _)| run.clone()))
            .integers(fences.iter().map(|(_, (attempt, _))| i64::from(*attempt)))
            .integers(fences.iter().map(|(_, (_, nonce))| *nonce))
    };
    let all: Vec<_> = highest.iter().collect();
    let holding = catalog::FENCE_HOLD_MANY.bind(project.as_str()).bind(named(&all));
    let held: Vec<(String, String, Option<i64>)> = transaction.fetch_all(holding).await?;
    let mut fences: HashMap<(String, String), i64> =
        held.into_iter().filter_map(|(job, run, id)| Some(((job, run), id?))).collect();
    let lower: Vec<_> = highest.iter().filter(|(name, _)| !fences.contains_key(name)).collect();
    if !lower.is_empty() {
        let raise = catalog::FENCE_RAISE_MANY.bind(project.as_str()).bind(named(&lower));
        let raised: Vec<(String, String, i64)> = transaction.fetch_all(raise).await?;
        fences.extend(raised.into_iter().map(|(job, run, id)| ((job, run), id)));
    }
    let numbered = fences.into_iter().filter_map(|(name, id)| {
        let height = highest.get(&name).copied()?;
        Some((name, (id, height)))
    });
    Ok(numbered.collect())
}

/// Claims keys that are free. Returns when each was recorded.
async fn claim_many(
    transaction: &mut Transaction,
    fences: &Fences,
    pending: &[&PendingClaim],
) -> std::result::Result<std::result::Result<HashMap<(i64, String), i64>, Refusal>, DatabaseError> {
    if pending.is_empty() {
        return Ok(Ok(HashMap::new()));
    }
    let rows = Rows::default()
        .integers(pending.iter().map(|pending| pending.request.ledger))
        .named("ledger")
        .texts(pending.iter().map(|pending| pending.request.key.as_str()))
        .named("key")
        .integers(pending.iter().map(|pending| pending.request.fingerprint))
        .named("fingerprint")
        .integers(pending.iter().map(|pending| pending.fence(fences)))
        .named("fence")
        .integers(pending.iter().map(|pending| pending.attempt().map(i64::from)))
        .named("attempt")
        .integers(pending.iter().map(|pending| pending.nonce()))
        .named("nonce")
        .integers(pending.iter().map(|pending| i64::from(pending.request.version)))
        .named("version");
    let claim = match unit_state::claim_many(UnitEvent::Applied, rows) {
        Ok(claim) => claim,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let claimed: Vec<(i64, String, i64)> = transaction.fetch_all(claim).await?;
    Ok(Ok(claimed.into_iter().map(|(ledger, key, at)| ((ledger, key), at)).collect()))
}

async fn past_many(
    transaction: &mut Transaction,
    pending: &[&PendingClaim],
) -> std::result::Result<HashMap<(i64, String), Known>, DatabaseError> {
    if pending.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = Rows::default()
        .integers(pending.iter().map(|pending| pending.request.ledger))
        .texts(pending.iter().map(|pending| pending.request.key.as_str()));
    let known: Vec<Known> = transaction.fetch_all(catalog::UNIT_PAST_MANY.bind(rows)).await?;
    let known = known.into_iter().filter(|known| known.status != ABSENT);
    Ok(known.map(|known| ((known.ledger, known.key.clone()), known)).collect())
}
