//! A small program that tests kill: it opens the project in a folder and does one thing, as the command line would.
//!
//! | variable | meaning |
//! |---|---|
//! | `PROJECT_LEASE`, `PROJECT_POLL` | milliseconds: of a lease, and between two looks for work |
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a panic is its report of a failure")]

use std::future::IntoFuture;
use std::path::Path;
use std::time::Duration;

use refrain::admin::{CheckpointOf, OutputPlace, StoreOrigin};
use refrain::core::Word as _;
use refrain::project::Project;
use refrain::{Ask, Error, OpenOptions, Refrain, Settings};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// How often to check whether anything is open.
const LOOK: Duration = Duration::from_millis(20);

fn milliseconds(name: &str, default: u64) -> Duration {
    Duration::from_millis(std::env::var(name).map_or(default, |text| text.parse().unwrap()))
}

fn listen(kind: SignalKind) -> Signal {
    signal(kind).unwrap()
}

/// Serves until told to end by a signal, or until nothing is open; reads the files again on SIGHUP.
async fn serve(root: &Path, refrain: &Refrain, until_idle: bool) -> Result<(), Error> {
    let (mut end, mut hangup) = (listen(SignalKind::terminate()), listen(SignalKind::hangup()));
    let serving = refrain.serve();
    let stop = serving.stop_handle();
    println!("serving");
    // In a task of its own: a future that is not polled while the files are read might hold a lock that reading
    // needs.
    let mut serving = tokio::spawn(serving.into_future());
    let idle = async || loop {
        tokio::time::sleep(LOOK).await;
        if until_idle && matches!(refrain.open_runs().await, Ok(0)) {
            return;
        }
    };
    loop {
        tokio::select! {
            counts = &mut serving => {
                let counts = counts.unwrap()?;
                println!("ended={} opened={}", counts.ended, counts.opened);
                return Ok(());
            }
            _ = end.recv() => stop.drain(),
            () = idle() => stop.drain(),
            _ = hangup.recv() => match Project::load(root).unwrap().definitions() {
                Ok(definitions) => {
                    refrain.replace_jobs(definitions).await?;
                    println!("reloaded");
                }
                Err(error) => println!("refused: {error}"),
            },
        }
    }
}

async fn run(refrain: &Refrain, name: &str, ask: Ask) -> Result<(), Error> {
    let report = refrain.run(name, ask).await?;
    println!("did {:?} {} {}", report.did, report.run.standing.node().name(), report.run.attempt);
    for line in report.run.message.iter().flat_map(|message| message.lines()) {
        println!("said {line}");
    }
    for record in refrain.output(&report.run, OutputPlace::default()).await? {
        print!("{}", record.text);
    }
    Ok(())
}

/// Records what an operator states about the store before it is opened; false if the arguments are about something
/// else.
async fn stated(options: &OpenOptions, arguments: &[&str]) -> Result<bool, Error> {
    match *arguments {
        ["state", "restored"] => options.state(StoreOrigin::Restored).await?,
        ["state", "settled"] => options.state(StoreOrigin::Settled).await?,
        ["adopt"] => {
            let shown = options.recover(None).await?;
            println!("adopted {}", options.recover(Some(&shown)).await?.len());
        }
        _ => return Ok(false),
    }
    Ok(true)
}

async fn act(root: &Path, arguments: &[&str]) -> Result<(), Error> {
    let project = Project::load(root).unwrap();
    let settings =
        Settings::new().lease(milliseconds("PROJECT_LEASE", 60_000)).poll(milliseconds("PROJECT_POLL", 50));
    let options = project.opening(None).await?.settings(settings).connections(4);
    if stated(&options, arguments).await? {
        project.close().await;
        return Ok(());
    }
    let refrain = options.open().await?;
    match *arguments {
        ["run", name] => run(&refrain, name, Ask::Once).await?,
        ["run", name, "--again"] => run(&refrain, name, Ask::Again).await?,
        ["run", name, "--redo"] => run(&refrain, name, Ask::Redo).await?,
        ["retry", name] => run(&refrain, name, Ask::Retry).await?,
        ["confirm", name, unit] => println!("confirmed {}", refrain.confirm_unit(name, unit).await?),
        ["settle", name] => {
            let report = refrain.settle_held(name).await?;
            println!("did {:?} {} {}", report.did, report.run.standing.node().name(), report.run.attempt);
        }
        ["set-checkpoint", run, name, position, seen] => {
            let (window, job) = (refrain.window_start(run).await?, run.split('@').next().unwrap());
            let of = CheckpointOf::new(job, name).window(window);
            refrain.set_checkpoint(of, position, Some(seen)).await?;
        }
        ["enqueue", job, key, payload] => {
            let report = refrain.enqueue_json(job, key, Some(payload)).await?;
            println!("{:?}", report.did);
        }
        ["tick"] => println!("{:?}", refrain.tick().await?),
        ["work"] => serve(root, &refrain, true).await?,
        ["serve"] => serve(root, &refrain, false).await?,
        _ => {
            eprintln!("unknown command: {arguments:?}; commands: run, enqueue, tick, work, serve");
            std::process::exit(2);
        }
    }
    refrain.close().await;
    project.close().await;
    Ok(())
}

fn main() {
    refrain::host::supervise();
    refrain::failpoint::arm();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let Some((root, arguments)) = arguments.split_first() else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    if let Err(error) = runtime.unwrap().block_on(act(Path::new(root), arguments)) {
        eprintln!("project: {error}");
        std::process::exit(if error.is_transient() { 75 } else { 1 });
    }
}
