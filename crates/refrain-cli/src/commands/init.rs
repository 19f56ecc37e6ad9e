//! `refrain init`: a project with a first job that runs without changes.

use std::fmt;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;
use refrain::core::ProjectName;
use refrain::core::terminal::typed;
use refrain::project::{JOBS_FOLDER, PROJECT_FILE};
use serde::Serialize;

use crate::context::Context;
use crate::exit::{CliError, Exit};

#[derive(Args)]
#[command(after_help = "Examples:\n  refrain init\n  refrain init shop")]
pub(crate) struct Arguments {
    /// The folder, which is created if needed; the default is the current directory.
    pub(crate) dir: Option<PathBuf>,
}

const HELLO: &str = r#"# The first job: any command can be one. It has one run per day, which is done once, however often it is requested.
schedule = "@daily"
window   = "day"
command  = ["echo", "hello from", "{ds}"]

# Next: put your own command here. After a crash it may run again, so make it overwrite, not append;
# with `interrupted = "hold"` an operator decides instead.
"#;

const IGNORED: &str = "# The store: runs and their results.\n.refrain/\n";

#[derive(Serialize)]
struct Made {
    project: String,
    files: Vec<String>,
}

impl fmt::Display for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "project {}", self.project)?;
        self.files.iter().try_for_each(|file| write!(f, "\ncreated {file}"))
    }
}

pub(crate) fn init(context: &Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let folder = arguments.dir.clone().or(context.folder.clone()).unwrap_or_else(|| PathBuf::from("."));
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| CliError::Write { path, source }
    };
    if folder.join(PROJECT_FILE).exists() {
        return Err(CliError::Refused(format!(
            "{} has a {PROJECT_FILE} already\n  nothing was written; check it with `refrain check`",
            folder.display()
        )));
    }
    fs::create_dir_all(folder.join(JOBS_FOLDER)).map_err(failed(&folder))?;
    let name = named(&folder);
    let project = format!(
        "# The project. Its name is part of every stored key: choose it once.\n[project]\nname = \"{name}\"\n\n\
         # Where runs are recorded. This is the default; use postgres://… for more than one machine.\n\
         # [store]\n# url = \"sqlite:.refrain/refrain.db\"\n"
    );
    let mut files = Vec::new();
    for (file, text) in
        [(PROJECT_FILE, project.as_str()), ("jobs/hello.toml", HELLO), (".gitignore", IGNORED)]
    {
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

/// A project name from the name of the folder.
fn named(folder: &Path) -> String {
    let folder = std::path::absolute(folder).unwrap_or_default();
    let name = folder.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let name = name.replace([' ', '_', '.'], "-");
    if ProjectName::parse(&name).is_ok() { name } else { "project".to_owned() }
}

/// Creates a file; an existing one stays as it is.
fn write_new(path: &Path, text: &str) -> io::Result<bool> {
    match fs::File::create_new(path) {
        Ok(mut file) => file.write_all(text.as_bytes()).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}
