//! Who decides, and why: the options of commands that decide something, and the default name.
//!
//! The default is the user and machine of the operating system. `/etc/passwd` comes before the environment: a variable
//! left behind by another user would name the wrong person.

use std::fs;

use clap::Args;
use refrain::core::Person;

use crate::exit::CliError;

/// Who decides, and why.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Deciding {
    /// Who decides; the default is the user and the machine.
    #[arg(long = "as", value_name = "NAME", env = "REFRAIN_WHO")]
    pub(crate) who: Option<String>,
    /// Why. The reason is kept with the decision; `show` and `trace` print it.
    #[arg(long, value_name = "TEXT", alias = "because")]
    pub(crate) why: Option<String>,
}

impl Deciding {
    pub(crate) fn person(&self) -> Result<Person, CliError> {
        let person = match &self.who {
            Some(who) => Person::named(who)?,
            None => Person::named(&of_the_system()).or_else(|_| Person::named("unknown"))?,
        };
        Ok(match &self.why {
            Some(why) => person.because(why)?,
            None => person,
        })
    }
}

/// The user and the machine, as in `ada@office`.
fn of_the_system() -> String {
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let said = ["LOGNAME", "USER"].into_iter().find_map(|name| std::env::var(name).ok());
    let user = user_of(refrain::host::user_id(), &users).or(said.filter(|name| !name.is_empty()));
    let user = user.unwrap_or_else(|| format!("user {}", refrain::host::user_id()));
    let files = ["/proc/sys/kernel/hostname", "/etc/hostname"].into_iter();
    let mut hosts = files.filter_map(|file| fs::read_to_string(file).ok()).map(|text| text.trim().to_owned());
    match hosts.find(|host| !host.is_empty()) {
        Some(host) => format!("{user}@{host}"),
        None => user,
    }
}

/// The name of a user in the list of users, each on a line as `name:password:number:…`.
fn user_of(number: u32, users: &str) -> Option<String> {
    let number = number.to_string();
    let fields = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let mut of_number = fields.filter(|fields| fields.get(2) == Some(&number.as_str()));
    of_number.find_map(|fields| fields.first().map(|name| (*name).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_number() {
        let users = "root:x:0:0:root:/root:/bin/sh\nada:x:1000:1000::/home/ada:/bin/sh\nodd line\n";
        assert_eq!(user_of(1000, users).as_deref(), Some("ada"));
        assert_eq!((user_of(7, users), user_of(0, "")), (None, None));
    }
}
