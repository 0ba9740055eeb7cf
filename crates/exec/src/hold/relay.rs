//! Connections from a network of one's own to one port of the machine.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};

/// How many connections there can be at a time. A program that talks to a model has a few.
const MOST: usize = 128;
/// How much waits to be passed on at most, in each direction.
const CHUNK_BYTES: usize = 64 * 1024;
/// How long a connection to this machine may take to come about.
const CONNECTING: Duration = Duration::from_secs(2);
/// How often a connection is served before the others are.
const ROUNDS: usize = 16;

/// Passes on what comes and goes between a port in another network and an address in ours.
#[derive(Debug)]
pub(super) struct Relay {
    inside: TcpListener,
    outside: SocketAddr,
    connections: Vec<Connection>,
}

#[derive(Debug)]
struct Connection {
    inside: TcpStream,
    outside: TcpStream,
    out: Flow,
    back: Flow,
}

/// One direction of a connection.
#[derive(Debug, Default)]
struct Flow {
    waiting: Vec<u8>,
    sent: usize,
    /// Nothing more will come.
    is_at_end: bool,
    /// The other side was told so.
    is_done: bool,
}

impl Relay {
    /// Whoever connects to `inside` is connected with `outside`.
    pub(super) fn new(inside: TcpListener, outside: SocketAddr) -> io::Result<Self> {
        inside.set_nonblocking(true)?;
        Ok(Self { inside, outside, connections: Vec::new() })
    }

    /// Adds what is waited for.
    pub(super) fn awaited<'a>(&'a self, descriptors: &mut Vec<PollFd<'a>>) {
        if self.connections.len() < MOST {
            descriptors.push(PollFd::new(&self.inside, PollFlags::IN));
        }
        for Connection { inside, outside, out, back } in &self.connections {
            for (stream, from, to) in [(inside, out, back), (outside, back, out)] {
                let mut flags = PollFlags::empty();
                flags.set(PollFlags::IN, from.wants_to_read());
                flags.set(PollFlags::OUT, to.wants_to_write());
                // Without a wish, an end that cannot be helped would wake us all the time.
                if !flags.is_empty() {
                    descriptors.push(PollFd::from_borrowed_fd(stream.as_fd(), flags));
                }
            }
        }
    }

    /// Takes new connections, and passes on what there is.
    pub(super) fn pass_on(&mut self) {
        while self.connections.len() < MOST {
            // Who cannot be connected sees a connection that is closed.
            match self.inside.accept() {
                Ok((inside, _)) => self.connections.extend(Connection::new(inside, self.outside)),
                Err(_) => break,
            }
        }
        self.connections.retain_mut(|connection| {
            let Connection { inside, outside, out, back } = connection;
            let is_well =
                out.pass_on(inside, outside).is_ok() && back.pass_on(outside, inside).is_ok();
            is_well && !(out.is_done && back.is_done)
        });
    }
}

impl Connection {
    fn new(inside: TcpStream, outside: SocketAddr) -> io::Result<Self> {
        let outside = TcpStream::connect_timeout(&outside, CONNECTING)?;
        for stream in [&inside, &outside] {
            stream.set_nonblocking(true)?;
            stream.set_nodelay(true)?;
        }
        Ok(Self { inside, outside, out: Flow::default(), back: Flow::default() })
    }
}

impl Flow {
    fn wants_to_read(&self) -> bool {
        !self.is_at_end && self.waiting.is_empty()
    }

    fn wants_to_write(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Passes on what there is without waiting for more.
    fn pass_on(&mut self, mut from: &TcpStream, mut to: &TcpStream) -> io::Result<()> {
        for _ in 0..ROUNDS {
            let done = if self.wants_to_write() {
                to.write(self.waiting.get(self.sent..).unwrap_or_default()).map(|length| {
                    self.sent += length;
                    if self.sent >= self.waiting.len() {
                        self.waiting.clear();
                        self.sent = 0;
                    }
                })
            } else if self.wants_to_read() {
                self.waiting.resize(CHUNK_BYTES, 0);
                let read = from.read(&mut self.waiting);
                self.waiting.truncate(*read.as_ref().unwrap_or(&0));
                read.map(|length| self.is_at_end = length == 0)
            } else if !self.is_done {
                self.is_done = true;
                to.shutdown(Shutdown::Write)
            } else {
                return Ok(());
            };
            match done {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Serves the relay until `is_over`.
    fn serve(relay: &mut Relay, mut is_over: impl FnMut() -> bool) {
        let begun = std::time::Instant::now();
        while !is_over() {
            assert!(begun.elapsed() < Duration::from_secs(20), "nothing comes through");
            relay.pass_on();
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn everything_comes_through_in_both_directions_and_so_does_the_end() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let inside = TcpListener::bind("127.0.0.1:0").unwrap();
        let door = inside.local_addr().unwrap();
        let mut relay = Relay::new(inside, server.local_addr().unwrap()).unwrap();
        let echo = std::thread::spawn(move || {
            let (mut stream, _) = server.accept().unwrap();
            let mut all = Vec::new();
            stream.read_to_end(&mut all).unwrap();
            stream.write_all(&all).unwrap();
        });
        let sent: Vec<u8> = (0..3_000_000_u32).map(|number| number.to_le_bytes()[0]).collect();
        let expected = sent.clone();
        let client = std::thread::spawn(move || {
            let mut stream = TcpStream::connect(door).unwrap();
            stream.write_all(&sent).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            let mut back = Vec::new();
            stream.read_to_end(&mut back).unwrap();
            back
        });
        serve(&mut relay, || client.is_finished());
        assert!(client.join().unwrap() == expected);
        echo.join().unwrap();
        serve(&mut relay, || true);
        relay.pass_on();
        assert!(relay.connections.is_empty());
    }

    #[test]
    fn where_nobody_answers_the_connection_is_closed() {
        let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let inside = TcpListener::bind("127.0.0.1:0").unwrap();
        let door = inside.local_addr().unwrap();
        let mut relay = Relay::new(inside, nobody).unwrap();
        let client = std::thread::spawn(move || {
            let mut stream = TcpStream::connect(door).unwrap();
            stream.read(&mut [0; 8])
        });
        serve(&mut relay, || client.is_finished());
        assert!(matches!(client.join().unwrap(), Ok(0) | Err(_)));
        assert!(relay.connections.is_empty());
    }
}
