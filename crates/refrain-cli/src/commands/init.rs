//! `refrain init`: a project with a first job, that runs as it stands.

use std::fmt;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;
use refrain::core::ProjectName;
use refrain::core::terminal::typed;
use refrain::{FILE, JOBS};
use serde::Serialize;

use crate::context::Context;
use crate::exit::{Exit, Fault};

#[derive(Args)]
#[command(after_help = "Examples:\n  refrain init\n  refrain init shop")]
pub(crate) struct Arguments {
    /// Where; the current directory unless said. It is made if need be.
    pub(crate) dir: Option<PathBuf>,
}

const HELLO: &str = r#"# The first job: any command becomes one. Its runs are days, and each is done once, however often it is asked for.
schedule = "@daily"
window   = "day"
command  = ["echo", "hello from", "{ds}"]

# Next: put your own command here. It may be executed again after a crash, so let it write what it owns and not append;
# `interrupted = "hold"` asks a person instead.
"#;

const IGNORED: &str = "# The store: what ran, and what became of it.\n.refrain/\n";

#[derive(Serialize)]
struct Made {
    project: String,
    files: Vec<String>,
}

impl fmt::Display for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "project {}", self.project)?;
        self.files.iter().try_for_each(|file| write!(f, "\nmade {file}"))
    }
}

pub(crate) fn init(context: &Context, arguments: &Arguments) -> Result<Exit, Fault> {
    let folder = arguments.dir.clone().or(context.folder.clone()).unwrap_or_else(|| PathBuf::from("."));
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| Fault::Write { path, source }
    };
    if folder.join(FILE).exists() {
        return Err(Fault::Refused(format!(
            "there is a {FILE} in {} already\n  nothing was written; look at it with `refrain check`",
            folder.display()
        )));
    }
    fs::create_dir_all(folder.join(JOBS)).map_err(failed(&folder))?;
    let name = named(&folder);
    let project = format!(
        "# The project. Its name is part of everything that is remembered: choose it once.\n[project]\nname = \"{name}\"\n\n\
         # Where runs are recorded. The default; postgres://… when there is more than one machine.\n\
         # [store]\n# url = \"sqlite:.refrain/refrain.db\"\n"
    );
    let mut files = Vec::new();
    for (file, text) in [(FILE, project.as_str()), ("jobs/hello.toml", HELLO), (".gitignore", IGNORED)] {
        let path = folder.join(file);
        if write_new(&path, text).map_err(failed(&path))? {
            files.push(path.display().to_string());
        }
    }
    context.output.result(&Made { project: name, files })?;
    match &arguments.dir {
        Some(dir) => {
            context
                .output
                .say(format_args!("next: cd {} && refrain run hello", typed(&dir.to_string_lossy())));
        }
        None => context.output.say("next: refrain run hello"),
    }
    Ok(Exit::Done)
}

/// The name of the folder, if it can be one.
fn named(folder: &Path) -> String {
    let folder = std::path::absolute(folder).unwrap_or_default();
    let name = folder.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let name = name.replace([' ', '_', '.'], "-");
    if ProjectName::parse(&name).is_ok() { name } else { "project".to_owned() }
}

/// Writes a file that is not there; one that is stays as it is.
fn write_new(path: &Path, text: &str) -> io::Result<bool> {
    match fs::File::create_new(path) {
        Ok(mut file) => file.write_all(text.as_bytes()).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}
