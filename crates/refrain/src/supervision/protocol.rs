//! The protocol between a worker and a supervisor, over a pair of sockets.
//!
//! The worker sends a line of [`Orders`] together with the pipes that the command writes to, and perhaps the stream that it reads
//! from; then a number each time its lease is renewed: the end of the lease. The supervisor answers [`Answer::Ready`] when it has started, and answers orders once,
//! when no process of the command is left. Then it waits for the next orders. A number between two orders was meant for the
//! command that has ended, and orders contain their own end of the lease. When the worker's side is closed, the supervisor ends
//! its command, whether the worker meant it or is dead.

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

/// How many streams go with orders at most: standard output, standard error and standard input. Without the last, the input of the
/// command is empty.
const STREAMS: usize = 3;
/// How much is read at once.
const BUFFER: usize = 4 * 1_024;

/// Received pipes are not inherited: no command gets the pipes of another one.
#[cfg(target_os = "linux")]
const RECEIVING: RecvFlags = RecvFlags::CMSG_CLOEXEC;
#[cfg(not(target_os = "linux"))]
const RECEIVING: RecvFlags = RecvFlags::empty();

/// A command to execute. The names of fields and variants in this file are part of the protocol.
#[derive(Serialize, Deserialize)]
pub(crate) struct Orders {
    pub(crate) argv: Vec<String>,
    /// Variables of the worker that the command inherits as they are.
    pub(crate) inherited: Vec<(OsString, OsString)>,
    /// Of two variables with one name the last counts.
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) directory: OsString,
    /// How long the command has to end after it was asked to, in milliseconds.
    pub(crate) grace: u64,
    /// The end of the lease, in milliseconds since boot.
    pub(crate) until: u64,
}

/// An answer of the supervisor.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// The supervisor has started and has no command.
    Ready,
    /// The command could not be started.
    NotStarted { fault: StartFault, errno: Option<i32>, said: String },
    /// The lease had expired before the command could be started.
    TooLate,
    /// The command and every process it started have ended.
    Ended { end: ProcessEnd, why: EndReason },
}

/// What made it impossible to start a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum StartFault {
    Directory,
    Program,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ProcessEnd {
    Code(i32),
    Signal(i32),
}

/// Why a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum EndReason {
    /// By itself.
    Itself,
    /// The worker told the supervisor to end it.
    Told,
    /// The worker did not renew the lease in time.
    Silence,
}

/// A message as a line.
pub(crate) fn line(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

/// Sends as many bytes as fit, together with pipes. Returns the number of bytes.
pub(crate) fn say(socket: impl AsFd, bytes: &[u8], pipes: &[BorrowedFd<'_>]) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(STREAMS))];
    let mut along = SendAncillaryBuffer::new(&mut space);
    if !pipes.is_empty() && !along.push(SendAncillaryMessage::ScmRights(pipes)) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "too many pipes"));
    }
    let said = retry_on_intr(|| sendmsg(&socket, &[IoSlice::new(bytes)], &mut along, SendFlags::NOSIGNAL));
    Ok(said?)
}

/// The streams of a command.
pub(crate) struct Streams {
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
    /// None if its input is empty.
    pub(crate) stdin: Option<OwnedFd>,
}

/// Bytes and pipes that were received and not processed yet.
#[derive(Default)]
pub(crate) struct Inbox {
    bytes: Vec<u8>,
    pipes: Vec<OwnedFd>,
}

impl Inbox {
    /// Receives once. False if the other side is closed.
    pub(crate) fn listen(&mut self, socket: impl AsFd) -> io::Result<bool> {
        let mut bytes = [0; BUFFER];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(STREAMS))];
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
    pub(crate) fn line(&mut self) -> Option<Vec<u8>> {
        let end = self.bytes.iter().position(|byte| *byte == b'\n')?;
        let mut line: Vec<u8> = self.bytes.drain(..=end).collect();
        line.pop();
        Some(line)
    }

    /// Takes out the streams that were received.
    pub(crate) fn streams(&mut self) -> Option<Streams> {
        let mut streams = std::mem::take(&mut self.pipes).into_iter();
        let streams = Streams { stdout: streams.next()?, stderr: streams.next()?, stdin: streams.next() };
        Some(streams)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, pipe};
    use std::os::unix::net::UnixStream;

    use rustix::io::{FdFlags, fcntl_getfd};

    use super::*;

    #[test]
    fn lines_are_received_one_by_one_and_pipes_with_the_first_byte() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (mut reader, writer) = pipe().unwrap();
        let mut heard = Inbox::default();
        assert_eq!(say(&ours, b"17\n{\"a\"", &[]).unwrap(), 7);
        say(&ours, b":1}\n18", &[writer.as_fd(), writer.as_fd()]).unwrap();
        drop((ours, writer));
        let mut lines = Vec::new();
        while heard.listen(&theirs).unwrap() {
            lines.extend(std::iter::from_fn(|| heard.line()));
        }
        assert_eq!(lines, [b"17".to_vec(), b"{\"a\":1}".to_vec()]);
        let streams = heard.streams().unwrap();
        let both = [&streams.stdout, &streams.stderr];
        assert!(both.iter().all(|pipe| fcntl_getfd(pipe).unwrap().contains(FdFlags::CLOEXEC)));
        assert!(streams.stdin.is_none() && heard.streams().is_none(), "streams are taken once");
        drop(streams);
        assert_eq!(reader.read_to_end(&mut Vec::new()).unwrap(), 0, "no other process holds the pipes");
    }
}
