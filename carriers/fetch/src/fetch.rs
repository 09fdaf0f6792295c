//! One download.

use std::time::Duration;

use bytes::Bytes;
use http::response::Parts;
use http::{Request, Version, header};
use ranpace_noq::reports::Meter;
use tokio::net::lookup_host;
use tokio::time::timeout;

use crate::answer::{self, Beginning, Meaning};
use crate::content::Content;
use crate::error::FetchError;
use crate::options::{Http, Options};
use crate::output::PartialFile;
use crate::rate::Rates;
use crate::target::Target;
use crate::{http1, http3};

/// A whole content, and how it came. Times count from the first packet of the handshake, after names were resolved.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The protocol.
    pub http: Http,
    /// Bytes of content that came.
    pub bytes: u64,
    /// Bytes that were there from an earlier download.
    pub resumed_from: u64,
    /// End of the handshake, that of TLS included.
    pub handshake: Duration,
    /// Arrival of the content's first byte; of the answer, if the content is empty.
    pub first_byte: Duration,
    /// Arrival of its last byte.
    pub end: Duration,
    /// What had come by when.
    pub rates: Rates,
    /// Whether the content was compared with a digest that the server announced.
    pub digest_compared: bool,
    /// Smoothed RTT at the end, over QUIC.
    pub rtt: Option<Duration>,
    /// Reports that left; `None` if none were offered, or the server did not want them.
    pub reports: Option<u64>,
}

impl Measured {
    /// Bytes of content over the time from the first packet to the last byte, in bit/s.
    pub fn goodput(&self) -> f64 {
        self.bytes as f64 * 8.0 / self.end.as_secs_f64()
    }
}

/// A body of either protocol.
enum Body {
    Http1(http1::Body),
    Http3(Box<http3::Body>),
}

impl Body {
    async fn next(&mut self) -> Result<Option<Bytes>, String> {
        match self {
            Self::Http1(body) => body.next().await,
            Self::Http3(body) => body.next().await,
        }
    }
}

/// Checks what can be checked before a server is asked: certificates that are believed, and names of controls. The kernel's are
/// only known to it.
///
/// # Errors
///
/// If [`fetch()`] would fail with these options whatever the server does.
pub fn check(options: &Options) -> Result<(), FetchError> {
    match options.http {
        Http::One => drop(options.trust.client(b"http/1.1")?),
        Http::Three => {
            http3::config(options)?;
            options.reports.as_ref().map(Meter::new).transpose()?;
        }
    }
    Ok(())
}

/// Downloads `target`. `progress` is told how many more bytes have come.
///
/// # Errors
///
/// If the content does not come whole. What has come of a file stays in its part, and the next call goes on from there.
pub async fn fetch(
    target: &Target,
    options: &Options,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Measured, FetchError> {
    let found = lookup_host((target.host(), target.port())).await;
    let addresses: Vec<_> =
        found.map_err(|error| FetchError::Address { host: target.host(), error })?.collect();
    let mut file = match &options.folder {
        Some(folder) => {
            let name = target.file_name().unwrap_or("index.html");
            Some(PartialFile::open(folder, name, &target.to_string())?)
        }
        None => None,
    };
    // A server that does not go on from the beginning is asked for everything, once.
    for _ in 0..2 {
        let asked = file.as_ref().and_then(|file| file.beginning().cloned());
        let one = Attempt { target, options, addresses: &addresses, asked: asked.as_ref(), progress };
        match one.run(file).await? {
            Outcome::Done(measured) => return Ok(*measured),
            Outcome::StartOver(mut again) => {
                if let Some(file) = &mut again {
                    file.begin(None)?;
                }
                file = again;
            }
        }
    }
    Err(FetchError::NoRest)
}

/// One connection with one request.
struct Attempt<'a> {
    target: &'a Target,
    options: &'a Options,
    addresses: &'a [std::net::SocketAddr],
    asked: Option<&'a Beginning>,
    progress: &'a (dyn Fn(u64) + Sync),
}

enum Outcome {
    Done(Box<Measured>),
    StartOver(Option<PartialFile>),
}

impl Attempt<'_> {
    async fn run(&self, file: Option<PartialFile>) -> Result<Outcome, FetchError> {
        let Self { target, options, .. } = *self;
        let silence = |_| FetchError::Silence(options.patience);
        let http = if target.is_https() { options.http } else { Http::One };
        let (head, mut body, began, handshake, meter) = match http {
            Http::One => {
                if options.reports.is_some() {
                    let text = "reports of the receiver need HTTP/3: over TCP the kernel sends them, see `ranpace kernel load`";
                    return Err(FetchError::Options(text.to_owned()));
                }
                let opened =
                    timeout(options.patience, http1::Connection::open(target, self.addresses, options));
                let connection = opened.await.map_err(silence)??;
                let (began, handshake) = (connection.began, connection.handshake);
                let asking = timeout(options.patience, connection.ask(self.request(Version::HTTP_11)?));
                let (head, body) = asking.await.map_err(silence)??;
                (head, Body::Http1(body), began, handshake, None)
            }
            Http::Three => {
                let opened =
                    timeout(options.patience, http3::Connection::open(target, self.addresses, options));
                let connection = opened.await.map_err(silence)??;
                let (began, handshake) = (connection.began, connection.handshake);
                let meter = connection.meter.clone();
                let asking = timeout(options.patience, connection.ask(self.request(Version::HTTP_3)?));
                let (head, body) = asking.await.map_err(silence)??;
                (head, Body::Http3(Box::new(body)), began, handshake, meter)
            }
        };
        let _listed = meter.clone().map(|meter| options.meters.add(meter));
        let answered = began.elapsed();
        let Meaning::Content(promise) = answer::read(&head, self.asked)? else {
            return Ok(Outcome::StartOver(file));
        };
        let mut content = Content::new(promise, file, began)?;
        self.receive(&mut body, &mut content).await?;
        let end = began.elapsed();
        let digest_compared = content.end(http == Http::Three || ends_clearly(&head))?;
        let (mut rtt, mut wanted) = (None, false);
        if let Body::Http3(body) = body {
            (rtt, wanted) = (body.rtt(), body.reports_are_wanted());
            body.close().await;
        }
        Ok(Outcome::Done(Box::new(Measured {
            http,
            bytes: content.received,
            resumed_from: content.resumed_from(),
            handshake,
            first_byte: content.first_byte.map_or(answered, |at| at - began),
            end,
            rates: content.rates,
            digest_compared,
            rtt,
            reports: meter.filter(|_| wanted).map(|meter: Meter| meter.sent().reports),
        })))
    }

    async fn receive(&self, body: &mut Body, content: &mut Content) -> Result<(), FetchError> {
        loop {
            let piece = timeout(self.options.patience, body.next()).await;
            let piece = piece.map_err(|_| FetchError::Silence(self.options.patience))?;
            let received = content.received;
            let Some(piece) = piece.map_err(|why| FetchError::Broken { received, why })? else {
                return Ok(());
            };
            (self.progress)(piece.len() as u64);
            content.add(&piece)?;
        }
    }

    fn request(&self, version: Version) -> Result<Request<()>, FetchError> {
        let target = self.target;
        let mut request = Request::get(if version == Version::HTTP_3 {
            target.to_string()
        } else {
            target.path().to_owned()
        })
        .version(version)
        .header(header::USER_AGENT, concat!("ranpace/", env!("CARGO_PKG_VERSION")))
        .header(header::ACCEPT, "*/*");
        if version == Version::HTTP_11 {
            request = request.header(header::HOST, target.authority());
        }
        if let Some(asked) = self.asked {
            request = request
                .header(header::RANGE, format!("bytes={}-", asked.bytes))
                .header(header::IF_RANGE, &asked.etag);
        }
        request.body(()).map_err(|error| FetchError::Options(format!("the URL cannot be asked for: {error}")))
    }
}

/// Whether HTTP/1 marks the body's end: by its length or in chunks (RFC 9112, 6.3).
fn ends_clearly(head: &Parts) -> bool {
    head.headers.contains_key(header::CONTENT_LENGTH) || head.headers.contains_key(header::TRANSFER_ENCODING)
}
