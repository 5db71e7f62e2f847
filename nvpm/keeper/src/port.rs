// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Answers requests for the metrics. Anybody who reaches the pod can connect, so each client has a thread of its own,
//! little time, and only few clients are served at a time. Nothing here asks the name service.
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::metrics::Page;

/// The time in which a request must have come, and in which an answer must be taken.
const LONGEST: Duration = Duration::from_secs(10);
/// The most clients at a time.
const CLIENTS: usize = 32;
/// The most bytes of a request.
const SIZE: usize = 1 << 13;
/// The pause after the system has refused a connection or a thread.
const PAUSE: Duration = Duration::from_secs(1);

/// Serves the page on a port, from threads of this process. Port 0 is any free port. Returns the port.
pub fn start(port: u16, page: Page, longest: Duration) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port))?;
    let address = listener.local_addr()?;
    thread::Builder::new().spawn(move || serve(&listener, page, longest))?;
    Ok(address)
}

/// Serves the metrics of this node on a port.
pub fn serve_metrics(port: u16, make: impl Fn() -> String + Send + Sync + 'static) -> io::Result<SocketAddr> {
    start(port, Page::new(make), LONGEST)
}

fn serve(listener: &TcpListener, page: Page, longest: Duration) {
    let page = Arc::new(page);
    loop {
        let Ok((client, _)) = listener.accept() else {
            thread::sleep(PAUSE);
            continue;
        };
        // Each thread has a reference, and this function has one.
        if Arc::strong_count(&page) > CLIENTS {
            continue;
        }
        let page = Arc::clone(&page);
        let started = thread::Builder::new().spawn(move || {
            // A client that goes away gets no answer.
            let _ = answer(&client, &page, longest);
        });
        if started.is_err() {
            thread::sleep(PAUSE);
        }
    }
}

fn answer(client: &TcpStream, page: &Page, longest: Duration) -> io::Result<()> {
    let request = request(&mut Timed { client, deadline: Instant::now() + longest })?;
    let mut words = request.split(' ');
    let (status, text) = match (words.next(), words.next()) {
        (Some("GET"), Some("/metrics")) => ("200 OK", page.text()),
        (Some("GET"), _) => ("404 Not Found", "only /metrics is here\n".to_owned()),
        _ => ("501 Not Implemented", "only GET is known\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.0 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        text.len()
    );
    // The page may have taken longer than a client has time.
    let mut timed = Timed { client, deadline: Instant::now() + longest };
    timed.write_all(head.as_bytes())?;
    timed.write_all(text.as_bytes())?;
    client.shutdown(Shutdown::Write)?;
    Ok(())
}

/// Returns the first line of a request, after all of its lines have come.
fn request(client: &mut impl Read) -> io::Result<String> {
    let (mut found, mut buffer) = (Vec::new(), [0; 1024]);
    while !found.windows(4).any(|end| end == b"\r\n\r\n") {
        match client.read(&mut buffer) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => found.extend_from_slice(buffer.get(..count).unwrap_or_default()),
            // A signal is no mistake of the client's.
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if found.len() > SIZE {
            return Err(ErrorKind::InvalidData.into());
        }
    }
    let line = found.split(|byte| *byte == b'\r').next().unwrap_or_default();
    Ok(String::from_utf8_lossy(line).into_owned())
}

/// A client that is heard until a deadline.
struct Timed<'a> {
    client: &'a TcpStream,
    deadline: Instant,
}

impl Timed<'_> {
    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
    }
}

impl Read for Timed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.client.set_read_timeout(self.left()?)?;
        self.client.read(buffer)
    }
}

impl Write for Timed<'_> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.client.set_write_timeout(self.left()?)?;
        self.client.write(data)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str) -> Page {
        let text = text.to_owned();
        Page::new(move || text.clone())
    }

    fn connect(port: SocketAddr) -> TcpStream {
        TcpStream::connect((Ipv4Addr::LOCALHOST, port.port())).unwrap()
    }

    fn asked(port: SocketAddr, request: &str) -> String {
        let (mut client, mut said) = (connect(port), String::new());
        client.write_all(request.as_bytes()).unwrap();
        client.read_to_string(&mut said).unwrap();
        said
    }

    #[test]
    fn the_port() {
        let port = start(0, page("m 1\n"), LONGEST).unwrap();
        for request in ["GET /metrics HTTP/1.0\r\n\r\n", "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"] {
            let said = asked(port, request);
            assert!(said.starts_with("HTTP/1.0 200 OK\r\nContent-Type: text/plain; version=0.0.4; "), "{said}");
            assert!(said.ends_with("Content-Length: 4\r\nConnection: close\r\n\r\nm 1\n"), "{said}");
        }
        assert!(asked(port, "GET / HTTP/1.0\r\n\r\n").starts_with("HTTP/1.0 404 "));
        assert!(asked(port, "PUT /metrics HTTP/1.0\r\n\r\n").starts_with("HTTP/1.0 501 "));
        assert!(asked(port, "\r\n\r\n").starts_with("HTTP/1.0 501 "));
    }

    #[test]
    fn a_port_that_is_taken() {
        let port = start(0, page(""), LONGEST).unwrap();
        assert_eq!(start(port.port(), page(""), LONGEST).unwrap_err().kind(), ErrorKind::AddrInUse);
    }

    /// A client that asks nothing, or not all, must not keep its thread, and does not keep others from an answer.
    #[test]
    fn a_silent_client() {
        let port = start(0, page("m 1\n"), Duration::from_secs(2)).unwrap();
        let mut silent: Vec<TcpStream> = (0..CLIENTS - 1).map(|_| connect(port)).collect();
        silent[0].write_all(b"GET /metrics HTTP/1.1\r\n").unwrap();
        assert!(asked(port, "GET /metrics HTTP/1.0\r\n\r\n").ends_with("m 1\n"));
        for mut client in silent {
            client.set_read_timeout(Some(LONGEST)).unwrap();
            // Another test sends signals to this process.
            let end = request(&mut client).map_err(|error| error.kind());
            assert!(matches!(end, Err(ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset)), "{end:?}");
        }
        assert!(asked(port, "GET /metrics HTTP/1.0\r\n\r\n").ends_with("m 1\n"));
    }

    /// A signal interrupts the first read.
    #[test]
    fn a_signal() {
        struct Interrupted(bool);
        impl Read for Interrupted {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                if std::mem::replace(&mut self.0, true) {
                    return b"GET / HTTP/1.0\r\n\r\n".as_slice().read(buffer);
                }
                Err(ErrorKind::Interrupted.into())
            }
        }
        assert_eq!(request(&mut Interrupted(false)).unwrap(), "GET / HTTP/1.0");
    }

    /// A client may send without an end.
    #[test]
    fn a_long_request() {
        assert_eq!(request(&mut io::repeat(b'x')).unwrap_err().kind(), ErrorKind::InvalidData);
        assert_eq!(request(&mut b"GET / HTTP".as_slice()).unwrap_err().kind(), ErrorKind::UnexpectedEof);
    }

    /// A client that takes nothing must not keep its thread, either.
    #[test]
    fn a_client_that_takes_nothing() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut client = connect(listener.local_addr().unwrap());
        client.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
        let (accepted, _) = listener.accept().unwrap();
        let error = answer(&accepted, &page(&"x".repeat(1 << 26)), Duration::from_millis(300)).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock), "{error}");
    }
}
