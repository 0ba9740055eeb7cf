//! The thread, and its connections.
//!
//! Everything happens in one thread with a runtime of its own: a run that is served by its own
//! process shares no turn with the page. A client that stops reading holds what the system buffers
//! for it and one message, and is dropped after a while; nobody waits for it.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::Duration;

use futures::FutureExt as _;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::{JoinSet, LocalSet};
use tokio::time::Sleep;

use crate::gate::Gate;
use crate::route::Site;
use crate::runs::{Runs, Source};

/// How many connections there may be.
const MAX_CONNECTIONS: usize = 64;
/// How many prompts are made again at the same time.
const MAX_PROMPTS: usize = 2;
/// How long a connection may take to ask for something, or stay without asking.
const TO_ASK: Duration = Duration::from_secs(60);
/// How long pages get to hear of the end.
const TO_HEAR_OF_THE_END: Duration = Duration::from_secs(1);

/// How long a client may keep us waiting, and how often we look for news.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// A client that takes nothing for so long is dropped.
    pub to_take: Duration,
    /// The time between two looks at a journal.
    pub between_looks: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { to_take: Duration::from_secs(20), between_looks: Duration::from_millis(500) }
    }
}

/// A page that is being served. It ends when this is dropped.
#[derive(Debug)]
pub struct Server {
    address: String,
    /// Told once that the end has come.
    end: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves the page of `source` on loopback: on `port`, or on any if that is 0.
    pub fn start(source: Source, port: u16, patience: Patience) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        listener.set_nonblocking(true)?;
        let gate = Gate::new(listener.local_addr()?.port())?;
        let address = gate.address();
        let (end, ending) = watch::channel(false);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .max_blocking_threads(MAX_PROMPTS)
            .enable_all()
            .build()?;
        let serve = move || {
            let site = Site { gate, runs: Runs::new(source), patience, ending };
            let ended = LocalSet::new().block_on(&runtime, serve(listener, Rc::new(site)));
            if let Err(error) = ended {
                tracing::warn!(%error, "the web page has ended");
            }
        };
        let thread = std::thread::Builder::new().name("web".to_owned()).spawn(serve)?;
        Ok(Self { address, end, thread: Some(thread) })
    }

    /// The address of the page, with its token.
    pub fn address(&self) -> &str {
        &self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end.send_replace(true);
        if let Some(thread) = self.thread.take() {
            thread.join().ok(); // it has nothing to say
        }
    }
}

async fn serve(listener: TcpListener, site: Rc<Site>) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let mut connections = JoinSet::new();
    let mut ending = site.ending.clone();
    loop {
        tokio::select! {
            biased;
            _ = ending.wait_for(|it| *it) => break,
            accepted = listener.accept() => {
                while connections.try_join_next().is_some() {}
                match accepted {
                    Ok((stream, _)) if connections.len() < MAX_CONNECTIONS => {
                        connections.spawn_local(connection(stream, Rc::clone(&site)));
                    }
                    Ok(_) => {}
                    // Out of files, or a client that is gone already.
                    Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
                }
            }
        }
    }
    let all = async { while connections.join_next().await.is_some() {} };
    tokio::time::timeout(TO_HEAR_OF_THE_END, all).await.ok();
    Ok(())
}

async fn connection(stream: TcpStream, site: Rc<Site>) {
    let patient = Patient { stream, patience: site.patience.to_take, waiting: None };
    let answer = |request| {
        let site = Rc::clone(&site);
        async move { Ok::<_, Infallible>(site.answer(request).await) }
    };
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(TO_ASK);
    let mut connection =
        std::pin::pin!(http.serve_connection(TokioIo::new(patient), service_fn(answer)));
    let mut ending = site.ending.clone();
    tokio::select! {
        biased;
        // A connection that breaks is the client's affair.
        _ = connection.as_mut() => return,
        _ = ending.wait_for(|it| *it) => {}
    }
    connection.as_mut().graceful_shutdown();
    connection.await.ok();
}

/// A stream whose other end must take what it is sent.
struct Patient {
    stream: TcpStream,
    patience: Duration,
    waiting: Option<Pin<Box<Sleep>>>,
}

impl Patient {
    fn judged<T>(
        &mut self,
        written: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.waiting = None;
            return written;
        }
        let patience = self.patience;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        waiting.poll_unpin(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Patient {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Patient {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.judged(written, context)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.judged(flushed, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
