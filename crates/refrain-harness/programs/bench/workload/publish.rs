//! The cost of publishing a window as a whole (staged, checked and swapped), against a plain delete and insert of the
//! same rows.

use std::path::Path;
use std::time::{Duration, Instant};

use refrain::project::Project;
use refrain::{Ask, Refrain};

use super::units::resident;
use crate::report::{Figure, Report, Target, Unit};
use crate::scratch::{Plain, Scratch, Server};
use crate::{Plan, Result};

const ROWS: u32 = 1_000_000;
const FEW: u32 = 100_000;

const DELETE: &str = "delete from totals where day = '2026-06-09'";
const INSERT: &str = "insert into totals (day, id, region, amount) select day, id, region, \
     amount from orders where day = '2026-06-09'";

pub(crate) async fn measure(plan: &Plan, server: &Server, report: &mut Report) -> Result<()> {
    let count = plan.scaled(ROWS);
    let (mut bare, mut with_ids) = (Vec::new(), Vec::new());
    let (mut context, mut grown) = (String::new(), Vec::new());
    for _ in 0..plan.repetitions {
        let by_hand = by_hand(server, count).await?;
        let before = published(server, plan.scaled(FEW), "").await?.1;
        let (ours, after) = published(server, count, "").await?;
        let (ids, _) = published(server, count, "surrogate = { sk = [\"day\", \"id\"] }").await?;
        bare.push(by_hand.as_secs_f64() / ours.as_secs_f64());
        with_ids.push(by_hand.as_secs_f64() / ids.as_secs_f64());
        grown.push(after / before);
        context = format!("{:.2} s, by hand {:.2} s", ours.as_secs_f64(), by_hand.as_secs_f64());
    }
    let figure = |what: String, values, target, context: String| Figure {
        what,
        unit: Unit::Times,
        values,
        target,
        context,
    };
    let name = server.name();
    let what = format!("overwrite of {count} rows, speed against delete and insert");
    report.add(name, figure(what, bare, Target::AtLeast(0.8), context));
    let what = "the same with a derived id for each, against delete and insert without".to_owned();
    report.add(name, figure(what, with_ids, Target::Open, String::new()));
    let what = format!("memory after {count} rows, against {}", plan.scaled(FEW));
    report.add(name, figure(what, grown, Target::AtMost(1.3), String::new()));
    Ok(())
}

/// The orders of a day, and the old totals of that day.
async fn filled(server: &Server, scratch: &Scratch, count: u32) -> Result<Plain> {
    let mut plain = server.connect(scratch).await?;
    if matches!(plain, Plain::Postgres(_)) {
        plain
            .run("reset all; set enable_seqscan = on; set enable_hashjoin = on; set enable_mergejoin = on")
            .await?;
    }
    plain.run("create table orders (day date, id integer, region text, amount integer)").await?;
    plain.run("create table totals (sk text, day date, id integer, region text, amount integer)").await?;
    plain.run("create index totals_day on totals (day)").await?;
    plain
        .run(&format!(
            "with recursive n(i) as (select 1 union all select i + 1 from n where i < {count})
             insert into orders select '2026-06-09', i, 'region-' || (i % 100), i from n"
        ))
        .await?;
    plain.run(INSERT).await?;
    plain.tidy_up().await?;
    Ok(plain)
}

async fn by_hand(server: &Server, count: u32) -> Result<Duration> {
    let scratch = server.database().await?;
    let mut plain = filled(server, &scratch, count).await?;
    let begun = Instant::now();
    plain.run(&format!("begin; {DELETE}; {INSERT}; commit")).await?;
    let took = begun.elapsed();
    plain.close().await?;
    server.remove(scratch).await?;
    Ok(took)
}

/// How long it took, and how much memory the process used at that time.
async fn published(server: &Server, count: u32, more: &str) -> Result<(Duration, f64)> {
    let scratch = server.database().await?;
    filled(server, &scratch, count).await?.close().await?;
    let folder = tempfile::tempdir()?;
    let refrain = opened(folder.path(), &scratch, more).await?;
    let begun = Instant::now();
    let report = refrain.run("totals@2026-06-09", Ask::Once).await?;
    let took = begun.elapsed();
    if !report.is_done() {
        return Err(format!("{:?}", report.run.message).into());
    }
    let memory = resident()?;
    refrain.close().await;
    server.remove(scratch).await?;
    Ok((took, memory))
}

async fn opened(folder: &Path, scratch: &Scratch, more: &str) -> Result<Refrain> {
    let address = &scratch.address;
    let project = format!(
        r#"
            [project]
            name = "bench"
            [store]
            url = "{address}"
            [databases]
            shop = "{address}"
        "#
    );
    std::fs::write(folder.join("refrain.toml"), project)?;
    std::fs::create_dir(folder.join("jobs"))?;
    let job = format!(
        r#"
            schedule = "@daily"
            window = "day"
            start = 2026-06-09
            catch-up = "none"
            while-running = "allow"
            query = "select day, id, region, amount from orders where day = :ds"
            [publish]
            table = "totals"
            mode = "overwrite"
            owns = "day = :ds"
            {more}
        "#
    );
    std::fs::write(folder.join("jobs/totals.toml"), job)?;
    let project = Project::load(folder)?;
    project.migrate().await?;
    Ok(project.opening(None).await?.open().await?)
}
