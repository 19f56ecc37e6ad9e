//! `refrain serve`: schedules and workers, until a signal.

use std::future::IntoFuture;

use super::tick::Report;
use crate::exit::{Exit, Fault};
use crate::signals::{Ended, Signals, Step};
use crate::store::Named;

pub(crate) async fn serve(named: &Named) -> Result<Exit, Fault> {
    let output = named.output;
    let signals = Signals::listen()?;
    let refrain = named.prepared()?.open().await?;
    let serving = refrain.serve();
    let stop = serving.stop_handle();
    let steps = [Step::Drain, Step::StopNow];
    let Ended { result, is_interrupted } =
        signals.see_through(serving.into_future(), &stop, &steps, output).await;
    let Some(counts) = result.transpose()? else { return Ok(Exit::Interrupted) };
    refrain.close().await;
    output.result(&Report::of(None, counts))?;
    output.say("stopped; what is open goes on with the next `refrain serve` or `refrain tick`");
    Ok(if is_interrupted { Exit::Interrupted } else { Exit::Done })
}
