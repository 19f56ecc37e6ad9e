//! `refrain serve`: schedules and workers, until a signal.

use std::future::IntoFuture;
use std::net::SocketAddr;

use clap::{Args, ValueEnum};

use crate::context::Context;
use crate::exit::{Exit, Fault};
use crate::health;
use crate::left_out::LeftOut;
use crate::reload::Watch;
use crate::report::TickReport;
use crate::signals::{Ended, Signals, Step};

/// Where health is answered unless said otherwise.
const LISTEN: &str = "127.0.0.1:7717";

/// Open windows when they are due and run them, until told to stop.
///
/// The first SIGTERM or Ctrl-C lets what is under way end; the second gives it back to the queue and exits with 130. SIGHUP, or a
/// changed file, reads the files of the project again; what cannot be read changes nothing.
#[derive(Args)]
#[command(after_help = "Examples:\n  refrain serve\n  refrain serve --log json\n  \
    REFRAIN_STORE=postgres://ada:secret@db/shop refrain serve --listen none")]
pub(crate) struct Arguments {
    /// Where /healthz and /readyz are answered, on this machine only; `none` means not at all. 127.0.0.1:7717 if it is free.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    /// How lines are logged.
    #[arg(long, value_enum, default_value_t = Log::Text)]
    pub(crate) log: Log,
}

/// How lines are logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Log {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

pub(crate) async fn serve(context: &Context, arguments: &Arguments) -> Result<Exit, Fault> {
    let output = context.output;
    let signals = Signals::listen()?;
    let listener = match arguments.listen.as_deref() {
        Some("none") => None,
        Some(address) => Some(health::listen(parsed(address)?).await?),
        // An address that nobody asked for must not keep a second project on this machine from its work.
        None => health::listen(parsed(LISTEN)?).await.ok(),
    };
    let watch = Watch::begin(context.root()?)?;
    let opened = context.open().await?;
    let refrain = opened.refrain.clone();
    let left_out = LeftOut::default();
    left_out.say(&opened.project);
    match listener.as_ref().and_then(|listener| listener.local_addr().ok()) {
        Some(address) => {
            output.say(format_args!("health is answered at http://{address}/healthz and /readyz"));
        }
        None if arguments.listen.is_none() => {
            output.say(format_args!(
                "health is not answered, for {LISTEN} is taken; another address: --listen"
            ));
        }
        None => {}
    }
    context.say_if_root();
    let serving = refrain.serve();
    let stop = serving.stop_handle();
    let steps = [Step::Drain, Step::StopNow];
    let beside = tokio::spawn(watch.go_on(refrain.clone(), opened.project.clone(), left_out.clone(), output));
    let health =
        listener.map(|listener| tokio::spawn(health::answer(listener, refrain.clone(), left_out.clone())));
    let Ended { result, is_interrupted } =
        signals.see_through(serving.into_future(), &stop, &steps, output).await;
    beside.abort();
    health.iter().for_each(tokio::task::JoinHandle::abort);
    let Some(counts) = result.transpose()? else { return Ok(Exit::Interrupted) };
    opened.close().await;
    output.result(&TickReport::of(None, counts, left_out.files()))?;
    output.say("stopped; what is open goes on with the next `refrain serve` or `refrain tick`");
    Ok(if is_interrupted { Exit::Interrupted } else { Exit::Done })
}

fn parsed(address: &str) -> Result<SocketAddr, Fault> {
    address.parse().map_err(|_| {
        Fault::Refused(format!("`{address}` is no address to listen on\n  write one as in {LISTEN}, or none"))
    })
}
