//! A database host dies silently: the same process notices, opens new connections and continues.

use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;

use crate::serving::{address_of, becomes_done, get};
use crate::support::Desk;
use crate::support::black_hole::BlackHole;
use crate::support::children::ChildProcess;
use crate::support::eventually::{DEADLINE, eventually};
use crate::support::postgres::Scratch;

/// The longest that a process needs to notice: its statements have half a lease, and it waits between tries.
const NOTICED: Duration = Duration::from_mins(3);

/// A desk on a store, and the same desk with a network in front of the store that can fail.
fn behind_a_network(scratch: &Scratch) -> (Desk, BlackHole) {
    let desk = Desk::at(&scratch.url());
    desk.refrain("migrate").succeeds(&[]);
    (desk, BlackHole::in_front_of(&scratch.url()))
}

fn through(desk: &Desk, url: &str, line: &str) -> Command {
    let mut command = desk.command(line);
    command.env("REFRAIN_STORE", url);
    command
}

#[tokio::test]
async fn f21_a_process_survives_a_host_that_dies_silently() {
    let scratch = Scratch::create().await;
    let (desk, network) = behind_a_network(&scratch);
    let url = network.url(&scratch.name);
    let mut serve = ChildProcess::spawn(&mut through(&desk, &url, "serve --listen 127.0.0.1:0"));
    let address = address_of(&mut serve).await;
    serve.wait_for_line("serving").await;
    desk.enqueue("noop", "before", "{}");
    becomes_done(&desk, "noop#before").await;

    assert!(network.swallow_open() > 0, "no connection is open");
    desk.enqueue("noop", "after", "{}");
    let is_done = async || {
        assert_eq!(get(&address, "/healthz").0, 200, "it answers meanwhile, and lives");
        assert!([200, 503].contains(&get(&address, "/readyz").0), "it answers meanwhile");
        desk.refrain("--json show noop#after").stdout.contains(r#""state":"done""#)
    };
    eventually("the same process does it", NOTICED, is_done).await;
    eventually("it is ready again", NOTICED, async || get(&address, "/readyz").0 == 200).await;
    serve.signal(Signal::TERM);
    let ended = serve.finish().await;
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    desk.refrain("fsck").succeeds(&["0 findings"]);
}

#[tokio::test]
async fn f21_a_signal_is_handled_while_no_server_answers() {
    let scratch = Scratch::create().await;
    let (desk, network) = behind_a_network(&scratch);
    let url = network.url(&scratch.name);
    let mut serve = ChildProcess::spawn(&mut through(&desk, &url, "serve --listen none"));
    serve.wait_for_line("serving").await;
    desk.enqueue("noop", "before", "{}");
    becomes_done(&desk, "noop#before").await;
    network.swallow_all();
    serve.signal(Signal::TERM);
    let ended = async || serve.has_ended();
    eventually("it leaves", NOTICED, ended).await;
}

#[tokio::test]
async fn run_exits_75_when_its_store_stays_unreachable() {
    let scratch = Scratch::create().await;
    let (desk, network) = behind_a_network(&scratch);
    desk.write(
        "jobs/slow.toml",
        "queue = true\ncommand = [\"sh\", \"-c\", \"touch begun; while [ ! -e go ]; do sleep 0.1; done\"]\n",
    );
    let url = network.url(&scratch.name);
    let mut run = ChildProcess::spawn(&mut through(&desk, &url, "run slow#1"));
    eventually("the command is running", DEADLINE, async || desk.file("begun").exists()).await;
    network.swallow_all();
    desk.write("go", "");
    eventually("the command does not wait for ever", NOTICED, async || run.has_ended()).await;
    let ended = run.finish().await;
    let output = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(75), "{output}");
    assert!(output.contains("is not recorded"), "{output}");
}
