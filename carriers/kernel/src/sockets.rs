//! The sockets of a control, as its iterator prints them: a line each, `key=value` between blanks.

use std::io::Read;

use crate::error::KernelError;

/// A socket.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Socket {
    /// Its own address and port.
    pub local: String,
    /// Its peer's.
    pub peer: String,
    /// What the kernel and the control say of it, by name; figures that are no numbers are left out.
    pub figures: Vec<(String, f64)>,
}

impl Socket {
    /// A figure by name.
    pub fn figure(&self, name: &str) -> Option<f64> {
        self.figures.iter().find(|(key, _)| key == name).map(|&(_, value)| value)
    }
}

/// Reads the sockets of a control from its iterator.
pub(crate) fn read(iterator: &mut impl Read, name: &str) -> Result<Vec<Socket>, KernelError> {
    let mut text = String::new();
    iterator.read_to_string(&mut text).map_err(KernelError::io("read the sockets of", name))?;
    Ok(parse(&text))
}

/// Reads what the iterator printed.
pub(crate) fn parse(text: &str) -> Vec<Socket> {
    text.lines().filter(|line| !line.trim().is_empty()).map(line).collect()
}

fn line(line: &str) -> Socket {
    let mut socket = Socket::default();
    for (key, value) in line.split_whitespace().filter_map(|word| word.split_once('=')) {
        match key {
            "local" => socket.local = value.to_owned(),
            "peer" => socket.peer = value.to_owned(),
            _ => {
                if let Some(number) = number(value) {
                    socket.figures.push((key.to_owned(), number));
                }
            }
        }
    }
    socket
}

/// A number, or one in fixed point, `raw/unit`.
fn number(text: &str) -> Option<f64> {
    match text.split_once('/') {
        Some((raw, unit)) => Some(raw.parse::<f64>().ok()? / unit.parse::<f64>().ok()?),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_sockets() {
        let text = "local=10.0.0.1:5201 peer=10.0.0.2:40000 cwnd=10 alpha=98304/65536 odd word=x\n\n";
        let [socket] = &parse(text)[..] else { panic!("one socket") };
        assert_eq!((socket.local.as_str(), socket.peer.as_str()), ("10.0.0.1:5201", "10.0.0.2:40000"));
        assert_eq!(socket.figure("cwnd"), Some(10.0));
        assert_eq!(socket.figure("alpha"), Some(1.5));
        assert_eq!(socket.figure("word"), None);
    }
}
