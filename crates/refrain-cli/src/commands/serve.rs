//! `refrain serve`: schedules and workers, until a signal.

use std::future::IntoFuture;
use std::net::SocketAddr;

use clap::{Args, ValueEnum};

use crate::context::Context;
use crate::exit::{CliError, Exit};
use crate::health;
use crate::left_out::LeftOut;
use crate::reload::Watch;
use crate::report::TickReport;
use crate::signals::{Finished, Signals, StopStep};

/// The default address of the health endpoint.
const LISTEN: &str = "127.0.0.1:7717";

/// Open windows when they are due and run them, until stopped.
///
/// The first SIGTERM or Ctrl-C lets running attempts end; the second returns them to the queue and exits with 130. SIGHUP, or
/// a changed file, reloads the files of the project; an invalid file changes nothing.
#[derive(Args)]
#[command(after_help = "Examples:\n  refrain serve\n  refrain serve --log json\n  \
    REFRAIN_STORE=postgres://ada:secret@db/shop refrain serve --listen none")]
pub(crate) struct Arguments {
    /// The loopback address of /healthz and /readyz, or `none`; the default is 127.0.0.1:7717, if it is free.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    /// The format of log lines.
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub(crate) log: LogFormat,
}

/// The format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Text.
    Text,
    /// One JSON object per line.
    Json,
}

pub(crate) async fn serve(context: &Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let output = context.output;
    let signals = Signals::listen()?;
    let listener = match arguments.listen.as_deref() {
        Some("none") => None,
        Some(address) => Some(health::listen(parsed(address)?).await?),
        // The default address must not stop a second project on this machine.
        None => health::listen(parsed(LISTEN)?).await.ok(),
    };
    let watch = Watch::begin(context.root()?)?;
    let opened = context.open().await?;
    let refrain = opened.refrain.clone();
    let left_out = LeftOut::default();
    left_out.say(&opened.project);
    match listener.as_ref().and_then(|listener| listener.local_addr().ok()) {
        Some(address) => {
            output.say(format_args!("health endpoint: http://{address}/healthz and /readyz"));
        }
        None if arguments.listen.is_none() => {
            output.say(format_args!(
                "health endpoint disabled: {LISTEN} is in use (choose another with --listen)"
            ));
        }
        None => {}
    }
    context.say_if_root();
    let serving = refrain.serve();
    let stop = serving.stop_handle();
    let steps = [StopStep::Drain, StopStep::StopNow];
    let beside = tokio::spawn(watch.go_on(refrain.clone(), opened.project.clone(), left_out.clone(), output));
    let health =
        listener.map(|listener| tokio::spawn(health::answer(listener, refrain.clone(), left_out.clone())));
    let Finished { result, is_interrupted } =
        signals.see_through(serving.into_future(), &stop, &steps, output).await;
    beside.abort();
    health.iter().for_each(tokio::task::JoinHandle::abort);
    let Some(counts) = result.transpose()? else { return Ok(Exit::Interrupted) };
    opened.close().await;
    output.result(&TickReport::of(None, counts, left_out.files()))?;
    output.say("stopped; open runs continue with the next `refrain serve` or `refrain tick`");
    Ok(if is_interrupted { Exit::Interrupted } else { Exit::Done })
}

fn parsed(address: &str) -> Result<SocketAddr, CliError> {
    address.parse().map_err(|_| {
        CliError::Refused(format!(
            "`{address}` is not a valid address to listen on\n  write one as in {LISTEN}, or none"
        ))
    })
}
