//! What a worker and a supervisor say to each other, over a pair of sockets.
//!
//! The worker says a line of [`Orders`] and sends along the pipes to which the command will print; then a number each time
//! its lease was renewed: up to when it is good. The supervisor says that it is [`Answer::Ready`] when it has been started, and
//! answers orders once, when nothing of the command is left. Then it waits for the next ones; a number that comes between was
//! meant for what has ended, and orders say for themselves up to when they are good. The end of what the worker says is the
//! word to end, whether it was meant so or the worker is dead.

use std::ffi::OsString;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::retry_on_intr;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize};

/// How many pipes go with orders: for standard output and for standard error.
const PIPES: usize = 2;
/// How much is heard at once.
const BUFFER: usize = 4 * 1_024;

/// What is received is nobody's but ours: no command gets the pipes of another one.
#[cfg(target_os = "linux")]
const RECEIVING: RecvFlags = RecvFlags::CMSG_CLOEXEC;
#[cfg(not(target_os = "linux"))]
const RECEIVING: RecvFlags = RecvFlags::empty();

/// What is to be executed, and how.
#[derive(Serialize, Deserialize)]
pub(super) struct Orders {
    pub(super) argv: Vec<String>,
    /// Variables that are passed on as they are, and are no text.
    pub(super) inherited: Vec<(OsString, OsString)>,
    /// The last of two with one name counts.
    pub(super) environment: Vec<(String, String)>,
    pub(super) directory: OsString,
    /// How long it has between the wish to end and the end, in milliseconds.
    pub(super) grace: u64,
    /// Up to when the lease is good, in milliseconds since the machine was started.
    pub(super) until: u64,
}

/// What a supervisor says.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Answer {
    /// It is there, and nothing has begun.
    Ready,
    /// The command could not begin.
    NotStarted { fault: Fault, errno: Option<i32>, said: String },
    /// The lease had run out before the command could begin.
    TooLate,
    /// The command has ended, and so has everything that it had started.
    Ended { end: End, why: Why },
}

/// What was wrong with a command that could not begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Fault {
    Directory,
    Program,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum End {
    Code(i32),
    Signal(i32),
}

/// Why it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Why {
    /// By itself.
    Itself,
    /// It was told to.
    Told,
    /// Nobody said in time that the lease was renewed.
    Silence,
}

/// Something to say, as a line.
pub(super) fn line(word: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(word)?;
    line.push(b'\n');
    Ok(line)
}

/// Says as much as fits, and sends pipes along. Gives how much that was.
pub(super) fn say(socket: impl AsFd, bytes: &[u8], pipes: &[BorrowedFd<'_>]) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(PIPES))];
    let mut along = SendAncillaryBuffer::new(&mut space);
    if !pipes.is_empty() && !along.push(SendAncillaryMessage::ScmRights(pipes)) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "too many pipes"));
    }
    let said = retry_on_intr(|| sendmsg(&socket, &[IoSlice::new(bytes)], &mut along, SendFlags::NOSIGNAL));
    Ok(said?)
}

/// What has been heard and not been understood yet.
#[derive(Default)]
pub(super) struct Heard {
    bytes: Vec<u8>,
    pipes: Vec<OwnedFd>,
}

impl Heard {
    /// Listens once. False if nothing more comes.
    pub(super) fn listen(&mut self, socket: impl AsFd) -> io::Result<bool> {
        let mut bytes = [0; BUFFER];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(PIPES))];
        let mut along = RecvAncillaryBuffer::new(&mut space);
        let heard =
            retry_on_intr(|| recvmsg(&socket, &mut [IoSliceMut::new(&mut bytes)], &mut along, RECEIVING));
        let length = heard?.bytes;
        for message in along.drain() {
            let RecvAncillaryMessage::ScmRights(pipes) = message else { continue };
            for pipe in pipes {
                #[cfg(not(target_os = "linux"))]
                rustix::io::fcntl_setfd(&pipe, rustix::io::FdFlags::CLOEXEC)?;
                self.pipes.push(pipe);
            }
        }
        self.bytes.extend_from_slice(bytes.get(..length).unwrap_or_default());
        Ok(length > 0)
    }

    /// Takes out the next whole line.
    pub(super) fn line(&mut self) -> Option<Vec<u8>> {
        let end = self.bytes.iter().position(|byte| *byte == b'\n')?;
        let mut line: Vec<u8> = self.bytes.drain(..=end).collect();
        line.pop();
        Some(line)
    }

    /// Takes out the pipes that came along.
    pub(super) fn pipes(&mut self) -> Option<[OwnedFd; PIPES]> {
        std::mem::take(&mut self.pipes).try_into().ok()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, pipe};
    use std::os::unix::net::UnixStream;

    use rustix::io::{FdFlags, fcntl_getfd};

    use super::*;

    #[test]
    fn lines_are_heard_one_by_one_however_they_come_and_pipes_with_the_first_byte() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (mut reader, writer) = pipe().unwrap();
        let mut heard = Heard::default();
        assert_eq!(say(&ours, b"17\n{\"a\"", &[]).unwrap(), 7);
        say(&ours, b":1}\n18", &[writer.as_fd(), writer.as_fd()]).unwrap();
        drop((ours, writer));
        let mut lines = Vec::new();
        while heard.listen(&theirs).unwrap() {
            lines.extend(std::iter::from_fn(|| heard.line()));
        }
        assert_eq!(lines, [b"17".to_vec(), b"{\"a\":1}".to_vec()]);
        let pipes = heard.pipes().unwrap();
        assert!(pipes.iter().all(|pipe| fcntl_getfd(pipe).unwrap().contains(FdFlags::CLOEXEC)));
        assert!(heard.pipes().is_none(), "they are taken once");
        drop(pipes);
        assert_eq!(reader.read_to_end(&mut Vec::new()).unwrap(), 0, "nobody else holds them");
    }
}
