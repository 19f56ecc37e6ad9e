//! Commands in which a value would become a part of a script, and those that keep it an argument.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the failure report")]

use refrain_core::project::{Files, Problem, SourceFile, read};

/// The keys of a job file that hold a command, with `WORDS` for its arguments.
const PLACES: [&str; 3] = [
    "queue = true\ncommand = WORDS\n",
    "queue = true\ncommand = [\"cat\", \"lines\"]\noutput = \"units\"\n[unit]\nkey = \"u:{id}\"\ncommand = WORDS\n",
    "queue = true\ncommand = [\"true\"]\n[[effect]]\nname = \"send\"\nkey = \"k:{payload.x}\"\ncommand = WORDS\n",
];

fn messages(job: &str) -> Vec<String> {
    let project = SourceFile::new("refrain.toml", "[project]\nname = \"shop\"\n");
    let job = [SourceFile::new("jobs/x.toml", job)];
    let files = Files { project: &project, jobs: &job, environment: &|_| None, sibling: &|_| None };
    let problems: Vec<Problem> = read(&files).err().unwrap_or_default();
    problems.into_iter().map(|problem| problem.message).collect()
}

/// The problems of the same arguments in each place, with a value that each place knows.
fn in_each_place(words: &[&str]) -> [Vec<String>; 3] {
    PLACES.map(|place| {
        let value = if place.contains("[unit]") { "{x}" } else { "{payload.x}" };
        let words: Vec<String> = words.iter().map(|word| word.replace("{x}", value)).collect();
        messages(&place.replace("WORDS", &serde_json::to_string(&words).unwrap()))
    })
}

#[test]
fn s11_a_value_does_not_become_part_of_a_script_wherever_a_command_stands() {
    for words in [
        &["sh", "-c", "echo {x}"][..],
        &["sh", "-c", "{x}"],
        &["/bin/sh", "-ec", "echo {x}"],
        &["bash", "--norc", "-c", "echo {x}"],
        &["bash", "-c", "-o", "pipefail", "echo {x}"],
        &["bash", "-c", "--", "echo {x}"],
        &["env", "sh", "-c", "echo {x}"],
        &["env", "A=b", "bash", "-c", "echo {x}"],
        &["env", "-S", "sh -c echo {x}"],
        &["nohup", "sh", "-c", "{x}"],
        &["timeout", "5", "sh", "-c", "echo {x}"],
        &["nice", "-n", "5", "sh", "-c", "echo {x}"],
        &["flock", "lock", "-c", "echo {x}"],
        &["script", "-qc", "echo {x}", "/dev/null"],
        &["/usr/bin/python3.11", "-c", "print('{x}')"],
        &["python3", "-Ic", "print('{x}')"],
        &["perl", "-e", "print '{x}'"],
        &["perl", "-eprint '{x}'"],
        &["php", "-r", "echo '{x}';"],
        &["node", "--eval", "log('{x}')"],
        &["node", "--eval=log('{x}')"],
        &["awk", "BEGIN {{ print \"{x}\" }}"],
        &["gawk", "-v", "a=b", "BEGIN {{ print {x} }}"],
        &["sed", "s/a/{x}/"],
        &["sed", "-n", "-e", "s/a/{x}/"],
        &["psql", "-c", "select '{x}'"],
        &["psql", "--command=select '{x}'"],
        &["su", "user", "-c", "echo {x}"],
        &["wrapper-of-ours", "--command", "echo {x}"],
        &["wrapper-of-ours", "awk", "{x}"],
        &["bash", "-cx", "echo {x}"],
        &["sh", "-cu", "echo {x}"],
        &["wrapper-of-ours", "sh", "-cu", "{x}"],
        &["env", "-S", "{x}"],
        &["env", "-iS{x}"],
        &["env", "--split-string={x}"],
        &["flock", "lock", "-c", "{x}"],
        &["su", "user", "-c", "{x}"],
        &["su", "-c{x}", "user"],
        &["script", "-qc", "{x}"],
        &["sed", "-e", "{x}"],
        &["sed", "-n", "file", "--expression={x}"],
        &["sed", "-f", "{x}"],
        &["jq", "-e", "{x}"],
        &["git", "-c", "{x}", "status"],
        &["nohup", "nice", "-n", "5", "psql", "-c", "{x}"],
        &["watch", "ls {x}"],
        &["watch", "-n", "5", "ls", "-x", "{x}"],
        &["parallel", "./export.sh {x}"],
        &["find", ".", "-exec", "sh", "-c", "echo {x}", ";"],
        &["perl", "-e{x}"],
        &["wrapper-of-ours", "/usr/bin/perl5.36", "-lane", "print {x}"],
        &["wrapper-of-ours", "bash", "-euxo", "pipefail", "-c", "{x}"],
        &["bash", "run.sh", "-c", "echo {x}"],
    ] {
        for messages in in_each_place(words) {
            assert!(
                messages.iter().any(|message| message.contains("part of a script")),
                "{words:?}: {messages:?}"
            );
        }
    }
}

#[test]
fn s11_a_value_does_not_choose_the_program_wherever_a_command_stands() {
    for words in [
        &["{x}"][..],
        &["./{x}.sh"],
        &["{x}", "y"],
        &["env", "{x}"],
        &["env", "-i", "-u", "HOME", "A=b", "{x}"],
        &["env", "{x}=1", "./export.sh"],
        &["env", "PATH={x}", "export"],
        &["env", "LD_PRELOAD={x}", "./export.sh"],
        &["nohup", "{x}"],
        &["timeout", "5", "{x}"],
        &["timeout", "-s", "KILL", "--", "5", "{x}"],
        &["nice", "{x}"],
        &["nice", "-n", "5", "env", "timeout", "5", "{x}"],
        &["ionice", "-c", "2", "{x}"],
        &["setsid", "-w", "{x}"],
        &["sudo", "-u", "user", "{x}"],
        &["doas", "{x}"],
        &["flock", "lock", "{x}"],
        &["xargs", "-a", "file", "{x}"],
        &["stdbuf", "-oL", "{x}"],
        &["chroot", "/root", "{x}"],
        &["time", "{x}"],
        &["watch", "-x", "{x}"],
        &["env", "-uSHELL", "{x}"],
        &["env", "-iu", "HOME", "{x}"],
        &["find", ".", "-name", "*.csv", "-exec", "{x}", ";"],
        &["find", ".", "-exec", "true", ";", "-execdir", "./{x}", "+"],
        &["sh", "{x}"],
        &["sh", "--", "{x}"],
        &["bash", "--rcfile", "{x}", "-i"],
        &["bash", "--rcfile={x}", "-i"],
        &["bash", "-o", "pipefail", "{x}"],
        &["python3", "{x}"],
        &["python3", "-m", "{x}"],
        &["perl", "-e", "1", "-MPOSIX={x}"],
        &["node", "--require", "{x}", "report.js"],
        &["deno", "run", "{x}"],
    ] {
        for messages in in_each_place(words) {
            assert!(
                messages.iter().any(|message| message.contains("the program is fixed")),
                "{words:?}: {messages:?}"
            );
        }
    }
    for messages in in_each_place(&[" ", "y"]) {
        assert!(messages.iter().any(|message| message.contains("the program to run")), "{messages:?}");
    }
}

#[test]
fn s11_a_value_that_stays_a_word_is_taken() {
    for words in [
        &["sh", "-c", "echo \"$1\"", "_", "{x}"][..],
        &["bash", "--norc", "-c", "echo \"$1\"", "_", "--name={x}"],
        &["./export.sh", "--date", "{x}"],
        &["./export.sh", "--date={x}"],
        &["grep", "-e", "{x}", "file"],
        &["python3", "report.py", "--day={x}"],
        &["awk", "-v", "day={x}", "{{ print day }}"],
        &["awk", "-f", "report.awk", "data-{x}.txt"],
        &["sed", "-f", "edit.sed", "data-{x}.txt"],
        &["tar", "-czf", "{x}.tar.gz", "data"],
        &["env", "DAY={x}", "./export.sh"],
        &["env", "-u", "HOME", "DAY={x}", "./export.sh", "{x}"],
        &["timeout", "5", "./export.sh", "{x}"],
        &["timeout", "{x}", "./export.sh"],
        &["nice", "-n", "5", "timeout", "-s", "KILL", "5", "./export.sh", "{x}"],
        &["flock", "lock-{x}", "./export.sh", "{x}"],
        &["su", "user", "-c", "echo \"$1\"", "_", "{x}"],
        &["xargs", "-a", "{x}", "./export.sh"],
        &["watch", "-x", "./export.sh", "{x}"],
        &["parallel", "./export.sh", ":::", "{x}"],
        &["find", "{x}", "-name", "{x}", "-exec", "./export.sh", "{x}", ";"],
        &["./deploy.sh", "env", "{x}"],
        &["./deploy.sh", "node", "{x}"],
        &["./report.sh", "time", "-c", "{x}"],
        &["bash", "-e", "export.sh", "{x}"],
        &["bash", "-l", "export.sh", "{x}"],
        &["perl", "-W", "export.pl", "{x}"],
        &["python3", "-W", "ignore", "export.py", "{x}"],
        &["perl", "-ne", "print", "{x}"],
        &["perl", "-e", "print", "--", "{x}"],
        &["python3", "-c", "print(1)", "--day={x}"],
        &["jq", "--arg", "day", "{x}", ".[$day]"],
        &["jq", "-e", ".a", "{x}"],
        &["git", "log", "--since={x}"],
        &["wc", "-c", "{x}"],
        &["bash", "run.sh", "-bucket", "{x}"],
        &["bash", "./run", "-c", "{x}"],
        &["timeout", "5", "python3", "sync.py", "-e", "{x}"],
        &["env", "ENV={x}", "./export.sh"],
        &["find", ".", "-name", "{x}.csv"],
        &["./export", "-source", "s3://orders/{x}", "-date", "day-{x}"],
    ] {
        let [of_job, of_unit, of_effect] = in_each_place(words);
        let is_about_words =
            |message: &String| message.contains("script") || message.contains("program is fixed");
        let messages: Vec<String> = [of_job, of_unit, of_effect].concat();
        assert!(!messages.iter().any(is_about_words), "{words:?}: {messages:?}");
    }
}
