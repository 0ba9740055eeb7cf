//! Starting a process where there may be no room for one at the moment.
//!
//! A machine that others use runs out of processes or memory for seconds, and then has some again.
//! Nobody is to blame for it, least of all the program that was to be started.

use std::io;
use std::time::Duration;

use tokio::time::sleep;

/// How often to try to start a process when there is no room for one, and how long to wait at first.
/// In all that is a quarter of a minute.
const TRIES: u32 = 8;
/// See [`TRIES`].
const PAUSE: Duration = Duration::from_millis(125);

/// What programs say that could start no process of their own.
const STARVED: &str = "Resource temporarily unavailable";

/// What `start` gives, tried again while there is no room for another process.
pub(crate) async fn when_there_is_room<T>(
    mut start: impl FnMut() -> io::Result<T>,
) -> io::Result<T> {
    let mut pause = PAUSE;
    for _ in 1..TRIES {
        match start() {
            Err(error) if is_passing(&error) => sleep(pause).await,
            done => return done,
        }
        pause *= 2;
    }
    start()
}

/// Whether there was no room for another process: others on the machine will make some.
pub(crate) fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::OutOfMemory)
}

/// What a program complains about, if it is that there was no room for a process of its own: an
/// interpreter may be a shell script.
pub(crate) fn starved(complaint: &str) -> Option<io::Error> {
    let line = complaint.lines().find(|line| line.contains(STARVED))?;
    Some(io::Error::new(io::ErrorKind::WouldBlock, line.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_others_can_mend_is_waited_for() {
        let error = |number: i32| io::Error::from_raw_os_error(number);
        assert!(is_passing(&error(libc::EAGAIN)) && is_passing(&error(libc::ENOMEM)));
        assert!(!is_passing(&error(libc::ENOENT)) && !is_passing(&error(libc::EACCES)));
    }

    #[tokio::test]
    async fn a_process_is_started_as_soon_as_there_is_room() {
        let mut answers = [Err(libc::EAGAIN), Err(libc::ENOMEM), Ok("started")].into_iter();
        let start = || answers.next().unwrap().map_err(io::Error::from_raw_os_error);
        assert_eq!(when_there_is_room(start).await.unwrap(), "started");

        let mut tries = 0;
        let missing = when_there_is_room(|| {
            tries += 1;
            Err::<(), _>(io::Error::from_raw_os_error(libc::ENOENT))
        });
        assert_eq!(missing.await.unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(tries, 1);
    }
}
