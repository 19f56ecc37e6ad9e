//! Child processes that tests start, stop, continue and kill.
//!
//! A child has a process group of its own and never outlives its test: dropping it kills the group.
//! If the test program itself is killed, when no destructor runs, a leash kills the group: a shell
//! that reads from a pipe whose other end only the test program holds. A signal at the death of the
//! parent would be tied to the thread that started the child, and would end it with that thread.
//!
//! A child that has ended is reaped when it is dropped, not when it is awaited: until then its
//! process id cannot be reused, and no signal can reach another process.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::chown;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;

use super::eventually::DEADLINE;

/// Asks the group to end, then kills it.
const LEASH: &str = r#"
read -r _
kill -s TERM -- "-$1"
for _ in 1 2 3 4 5; do kill -0 -- "-$1" || exit 0; sleep 1; done
kill -s KILL -- "-$1"
"#;

/// A running program with its output.
pub struct ChildProcess {
    process: Child,
    leash: Child,
    lines: UnboundedReceiver<String>,
    stdout: Arc<Mutex<Vec<u8>>>,
    stderr: Arc<Mutex<Vec<u8>>>,
    command: String,
}

impl ChildProcess {
    /// Starts a program in a process group of its own, without input.
    pub fn spawn(command: &mut Command) -> ChildProcess {
        let mut process = command
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut leash = Command::new("sh");
        leash.args(["-c", LEASH, "leash", &process.id().to_string()]).process_group(0);
        let leash = leash.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let (sender, lines) = unbounded_channel();
        let stdout = kept(process.stdout.take().unwrap(), sender.clone());
        let stderr = kept(process.stderr.take().unwrap(), sender);
        ChildProcess { process, leash, lines, stdout, stderr, command: format!("{command:?}") }
    }

    /// Its process id, which is also that of its group.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Signals the program alone, not its children. After `STOP` this returns once the program is stopped.
    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
        if signal == Signal::STOP {
            let options = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            waitid(WaitId::Pid(self.pid()), options).unwrap();
        }
    }

    /// Signals the program and all processes of its group.
    pub fn signal_group(&self, signal: Signal) {
        kill_process_group(self.pid(), signal).unwrap();
    }

    /// The next line of its output, of either stream, that contains the text.
    pub async fn wait_for_line(&mut self, text: &str) -> String {
        let line = timeout(DEADLINE, self.line_with(text)).await.unwrap_or(None);
        assert!(line.is_some(), "no line with {text:?} came from {}", self.printed());
        line.unwrap()
    }

    /// The next such line of a program that may end before; none if it does.
    pub async fn line_with(&mut self, text: &str) -> Option<String> {
        loop {
            match self.lines.recv().await {
                Some(line) if !line.contains(text) => {}
                line => return line,
            }
        }
    }

    /// How it ended.
    pub async fn wait(&mut self) -> ExitStatus {
        let pid = self.pid();
        let ended = timeout(DEADLINE, tokio::task::spawn_blocking(move || exit_status(pid))).await;
        assert!(ended.is_ok(), "within {DEADLINE:?} there was no end of {}", self.printed());
        ended.unwrap().unwrap()
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        waitid(WaitId::Pid(self.pid()), options).unwrap().is_some()
    }

    /// Whether each of its threads waits, so that no thread could continue its work. One look is not enough, because a
    /// thread may be woken after it was checked by another one that sleeps when it is checked.
    pub fn is_idle(&self) -> bool {
        let before = self.switches();
        before.is_some() && before == self.switches()
    }

    /// The context switches of each of its threads; none if a thread runs or is ready to run.
    fn switches(&self) -> Option<Vec<String>> {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.id())).unwrap();
        let mut switches = Vec::new();
        for thread in threads {
            // A thread may end meanwhile.
            let status = std::fs::read_to_string(thread.unwrap().path().join("status")).unwrap_or_default();
            let line = |name: &str| status.lines().find(|line| line.starts_with(name)).unwrap_or_default();
            if !line("State:").is_empty() && !line("State:").contains("S (sleeping)") {
                return None;
            }
            switches.extend(status.lines().filter(|line| line.contains("ctxt_switches")).map(str::to_owned));
        }
        Some(switches)
    }

    /// How it ended, and all output, including that of its children.
    pub async fn finish(&mut self) -> Output {
        let status = self.wait().await;
        let last = async { while self.lines.recv().await.is_some() {} };
        let ended = timeout(DEADLINE, last).await;
        assert!(ended.is_ok(), "within {DEADLINE:?} there was no end of the output of {}", self.printed());
        let (stdout, stderr) = (self.stdout.lock().unwrap().clone(), self.stderr.lock().unwrap().clone());
        Output { status, stdout, stderr }
    }

    /// Sends it a signal and waits, without a deadline, until it has ended.
    pub fn end(&self, signal: Signal) -> ExitStatus {
        self.signal(signal);
        exit_status(self.pid())
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.process)
    }

    fn printed(&self) -> String {
        let (stdout, stderr) = (self.stdout.lock().unwrap(), self.stderr.lock().unwrap());
        let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        format!("{}\n--- its stdout:\n{stdout}\n--- its stderr:\n{stderr}", self.command)
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        // First the leash, so that it does not kill a group that reuses the process id.
        let _ = self.leash.kill();
        let _ = self.leash.wait();
        let _ = kill_process_group(self.pid(), Signal::KILL);
        let _ = self.process.wait();
    }
}

/// Waits for the end without reaping.
fn exit_status(pid: Pid) -> ExitStatus {
    let ended = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap().unwrap();
    let code = ended.exit_status().unwrap_or_default() << 8;
    ExitStatus::from_raw(code | ended.terminating_signal().unwrap_or_default())
}

fn kept(stream: impl Read + Send + 'static, lines: UnboundedSender<String>) -> Arc<Mutex<Vec<u8>>> {
    let bytes = Arc::new(Mutex::new(Vec::new()));
    let kept = bytes.clone();
    std::thread::spawn(move || {
        let mut reader = BufReader::new(stream);
        let mut line = Vec::new();
        while matches!(reader.read_until(b'\n', &mut line), Ok(1..)) {
            bytes.lock().unwrap().extend_from_slice(&line);
            // The receiver may be dropped already; the output is stored all the same.
            let _ = lines.send(String::from_utf8_lossy(&line).trim_end().to_owned());
            line.clear();
        }
    });
    kept
}

/// Runs a program that refuses root as another user, who gets the directory and its files.
pub fn unprivileged<'a>(command: &'a mut Command, directory: &Path) -> &'a mut Command {
    command.current_dir(directory);
    if !rustix::process::geteuid().is_root() {
        return command;
    }
    let number = |which: &str| -> u32 {
        let printed = |user| Command::new("id").args([which, user]).output().unwrap().stdout;
        let numbers = [printed("postgres"), printed("daemon")].map(|bytes| String::from_utf8(bytes).unwrap());
        numbers.iter().find_map(|number| number.trim().parse().ok()).expect("a user postgres or daemon")
    };
    let (user, group) = (number("-u"), number("-g"));
    chown(directory, Some(user), Some(group)).unwrap();
    for entry in std::fs::read_dir(directory).unwrap() {
        chown(entry.unwrap().path(), Some(user), Some(group)).unwrap();
    }
    command.uid(user).gid(group)
}
