//! How much processor time processes have used, according to `/proc`.

use std::fs;

use crate::Result;
use crate::scratch::Plain;

/// Clock ticks per second in `/proc`: a hundred on every Linux.
const TICKS: f64 = 100.0;

/// The measured processes: this one, and the database server if it is on this machine.
pub(crate) struct Processes {
    server: Option<u32>,
}

struct Stat {
    name: String,
    parent: u32,
    seconds: f64,
}

/// Seconds used, by this process and by the server.
#[derive(Clone, Copy)]
pub(crate) struct Used {
    pub(crate) here: f64,
    pub(crate) server: Option<f64>,
}

impl Processes {
    pub(crate) async fn of(plain: &mut Plain) -> Result<Processes> {
        let server = match plain {
            Plain::Sqlite(_) => None,
            Plain::Postgres(_) => {
                let backend = u32::try_from(plain.number("select cast(pg_backend_pid() as bigint)").await?)?;
                stat(backend).filter(|stat| stat.name.starts_with("postgres")).map(|stat| stat.parent)
            }
        };
        Ok(Processes { server })
    }

    /// The time used so far, including that of ended children of the server, which is added to their parent's.
    pub(crate) fn used(&self) -> Result<Used> {
        let here = stat(std::process::id()).ok_or("there is no /proc")?.seconds;
        let Some(server) = self.server else { return Ok(Used { here, server: None }) };
        let all =
            fs::read_dir("/proc")?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
        let tree = all.filter_map(|process| Some((process, stat(process)?)));
        let tree = tree.filter(|(process, stat)| *process == server || stat.parent == server);
        Ok(Used { here, server: Some(tree.map(|(_, stat)| stat.seconds).sum()) })
    }
}

/// Name, parent and processor time of a process, with its ended children.
fn stat(process: u32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (head, tail) = text.rsplit_once(')')?;
    let fields: Vec<&str> = tail.split_whitespace().collect();
    let ticks = fields.get(11..15)?.iter().map(|field| field.parse::<f64>().unwrap_or(0.0));
    Some(Stat {
        name: head.split_once('(')?.1.to_owned(),
        parent: fields.get(1)?.parse().ok()?,
        seconds: ticks.sum::<f64>() / TICKS,
    })
}
