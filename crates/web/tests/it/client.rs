//! A folder of runs, a server for it, and a client that speaks just enough HTTP.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use mle_star_web::{Patience, Server, Source};
use serde_json::Value;
use tempfile::TempDir;

/// A recorded run, finished.
pub(crate) const RENT: &str = include_str!("../../../view/tests/fixtures/rent.jsonl");

/// Looks often, so that tests are quick.
pub(crate) const QUICK: Patience =
    Patience { to_take: Duration::from_millis(300), between_looks: Duration::from_millis(20) };

/// A folder of runs.
pub(crate) struct Folder {
    folder: TempDir,
}

impl Folder {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> &Utf8Path {
        Utf8Path::from_path(self.folder.path()).unwrap()
    }

    /// A run with this journal. Gives the path of the journal.
    pub(crate) fn run(&self, name: &str, journal: &str) -> Utf8PathBuf {
        let root = self.path().join(name);
        fs_err::create_dir_all(&root).unwrap();
        fs_err::write(root.join("journal.jsonl"), journal).unwrap();
        root.join("journal.jsonl")
    }

    pub(crate) fn serve(&self) -> Server {
        Server::start(Source::at(self.path()), 0, QUICK).unwrap()
    }
}

/// What the server answered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// Host and token of a server.
pub(crate) fn parts(server: &Server) -> (String, String) {
    let rest = server.address().strip_prefix("http://").unwrap();
    let (host, token) = rest.split_once("/?token=").unwrap();
    (host.to_owned(), token.to_owned())
}

/// Sends a request as it is.
pub(crate) fn send(server: &Server, request: &str) -> TcpStream {
    let mut stream = TcpStream::connect(parts(server).0).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

/// The answer to a request as it is.
pub(crate) fn answer(server: &Server, request: &str) -> Answer {
    let mut text = String::new();
    send(server, request).read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, head: head.to_lowercase(), body: body.to_owned() }
}

/// Asks for `path`, with the token.
pub(crate) fn get(server: &Server, path: &str) -> Answer {
    let (host, token) = parts(server);
    let mark = if path.contains('?') { '&' } else { '?' };
    let request = format!(
        "GET {path}{mark}token={token} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    );
    answer(server, &request)
}

/// The news of a run, message by message.
pub(crate) struct News {
    lines: BufReader<TcpStream>,
}

impl News {
    pub(crate) fn of(server: &Server, run: &str) -> Self {
        let (host, token) = parts(server);
        let request =
            format!("GET /api/live?run={run}&token={token} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        Self { lines: BufReader::new(send(server, &request)) }
    }

    /// The next message: what kind of event, and its data.
    pub(crate) fn next(&mut self) -> (String, Value) {
        let mut kind = "message".to_owned();
        loop {
            let mut line = String::new();
            assert_ne!(self.lines.read_line(&mut line).unwrap(), 0, "the stream has ended");
            if let Some(name) = line.strip_prefix("event: ") {
                kind = name.trim_end().to_owned();
            } else if let Some(data) = line.strip_prefix("data: ") {
                return (kind, serde_json::from_str(data).unwrap());
            }
        }
    }
}
