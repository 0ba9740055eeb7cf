//! What to start, told to a program that was started before anybody knew: see
//! [`Launch::ahead`](crate::Launch::ahead).
//!
//! The order comes first on standard input: a line with the number of bytes that follow it, then
//! words that each end with a zero byte, as no word can have one. They are the folder, the program,
//! the number of arguments, the arguments, and for each variable its name and its value. What
//! comes after that is for the program.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;
use std::process::Command;

/// The longest first line: the kernel takes fewer bytes of arguments than this has digits for.
const DIGITS: usize = 10;

/// A program to start, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) folder: PathBuf,
    pub(crate) program: OsString,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) variables: Vec<(OsString, OsString)>,
}

/// What the arguments of this process say to start; or, if there are none, what its standard input
/// will say. That is waited for when the result is called, which takes nothing that is meant for
/// the program.
///
/// For a program that stands between a [`Conversation`](crate::Conversation) and `claude`; see
/// [`Launch`](crate::Launch).
pub fn told(arguments: impl IntoIterator<Item = OsString>) -> impl FnOnce() -> io::Result<Command> {
    let mut arguments = arguments.into_iter();
    let given = arguments.next().map(|program| {
        let mut command = Command::new(program);
        command.args(arguments);
        // Whoever starts it may be somewhere else by then.
        std::env::current_dir().map(|folder| {
            command.current_dir(folder);
            command
        })
    });
    move || given.unwrap_or_else(|| Order::read(io::stdin()).map(Order::into_command))
}

impl Order {
    /// As it is sent.
    pub(crate) fn to_bytes(&self) -> io::Result<Vec<u8>> {
        let number = OsString::from(self.arguments.len().to_string());
        let variables = self.variables.iter().flat_map(|(name, value)| [name, value]);
        let head: [&OsStr; 3] = [self.folder.as_os_str(), &self.program, &number];
        let rest = self.arguments.iter().chain(variables).map(OsString::as_os_str);
        let mut words = Vec::new();
        for word in head.into_iter().chain(rest) {
            if word.as_bytes().contains(&0) {
                let message = format!("a zero byte in {}", word.display());
                return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
            }
            words.extend_from_slice(word.as_bytes());
            words.push(0);
        }
        let mut bytes = format!("{}\n", words.len()).into_bytes();
        bytes.append(&mut words);
        Ok(bytes)
    }

    /// The order that comes next, and not a byte more.
    fn read(from: impl AsFd) -> io::Result<Self> {
        let mut digits = Vec::new();
        loop {
            match read_exactly(&from, 1)?.as_slice() {
                b"\n" => break,
                more if digits.len() < DIGITS => digits.extend_from_slice(more),
                _ => return Err(misunderstood()),
            }
        }
        let length = std::str::from_utf8(&digits).ok().and_then(|digits| digits.parse().ok());
        let words = read_exactly(&from, length.ok_or_else(misunderstood)?)?;
        Self::of(&words).ok_or_else(misunderstood)
    }

    fn of(words: &[u8]) -> Option<Self> {
        let words = words.strip_suffix(b"\0")?;
        let mut words = words.split(|&byte| byte == 0).map(|it| OsString::from_vec(it.to_vec()));
        let (folder, program) = (words.next()?.into(), words.next()?);
        let number: usize = words.next()?.to_str()?.parse().ok()?;
        let arguments: Vec<OsString> = words.by_ref().take(number).collect();
        let mut variables = Vec::new();
        while let Some(name) = words.next() {
            variables.push((name, words.next()?));
        }
        (arguments.len() == number).then_some(Self { folder, program, arguments, variables })
    }

    fn into_command(self) -> Command {
        let mut command = Command::new(self.program);
        command.args(self.arguments).current_dir(self.folder);
        command.env_clear().envs(self.variables);
        command
    }
}

/// So many bytes. Nothing is read ahead: the rest is somebody else's.
fn read_exactly(from: &impl AsFd, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut chunk = vec![0; length.min(64 * 1024)];
    while bytes.len() < length {
        let wanted = chunk.len().min(length - bytes.len());
        match rustix::io::read(from, chunk.get_mut(..wanted).unwrap_or_default()) {
            Ok(0) => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "nothing to start")),
            Ok(read) => bytes.extend(chunk.iter().take(read)),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(bytes)
}

fn misunderstood() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "what to start cannot be understood")
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use proptest::prelude::*;

    use super::*;

    fn order() -> Order {
        let word = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
        Order {
            folder: "/work".into(),
            program: "/bin/claude".into(),
            arguments: vec![word(b"--model"), word(b""), word(b"caf\xe9\n")],
            variables: vec![("A".into(), "".into()), ("B".into(), "x=y".into())],
        }
    }

    fn sent(bytes: &[u8]) -> io::PipeReader {
        let (reader, mut writer) = io::pipe().unwrap();
        writer.write_all(bytes).unwrap();
        reader
    }

    #[test]
    fn an_order_arrives_as_it_was_sent_and_leaves_the_rest() {
        let mut bytes = order().to_bytes().unwrap();
        bytes.extend_from_slice(b"for the program");
        let reader = sent(&bytes);
        assert_eq!(Order::read(&reader).unwrap(), order());
        assert_eq!(io::read_to_string(reader).unwrap(), "for the program");
    }

    #[test]
    fn what_cannot_be_sent_or_understood_is_an_error() {
        let zero = Order { program: "a\0b".into(), ..order() };
        assert_eq!(zero.to_bytes().unwrap_err().kind(), io::ErrorKind::InvalidInput);
        for (bytes, kind) in [
            (&b""[..], io::ErrorKind::UnexpectedEof),
            (b"12\n/work\0", io::ErrorKind::UnexpectedEof),
            (b"x\n", io::ErrorKind::InvalidData),
            (b"99999999999\n", io::ErrorKind::InvalidData),
            (b"0\n", io::ErrorKind::InvalidData),
            (b"8\n/\0p\x002\0a\0", io::ErrorKind::InvalidData), // one argument is missing
            (b"8\n/\0p\x000\0A\0", io::ErrorKind::InvalidData), // a variable has no value
        ] {
            assert_eq!(Order::read(sent(bytes)).unwrap_err().kind(), kind, "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_much(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            Order::of(&bytes);
        }
    }
}
