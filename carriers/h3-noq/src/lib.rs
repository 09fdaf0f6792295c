//! HTTP/3 over [noq]: its connections and streams as [`h3`] wants a QUIC transport to be.
//!
//! Give [`Connection::new`] a [`noq::Connection`] whose ALPN is `h3`, and give the result to `h3::server` or `h3::client`:
//!
//! ```
//! # async fn serve(incoming: noq::Incoming) -> Result<(), Box<dyn std::error::Error>> {
//! let connection = h3_noq::Connection::new(incoming.await?);
//! let mut http = h3::server::Connection::<_, bytes::Bytes>::new(connection).await?;
//! while let Some(request) = http.accept().await? {
//!     let (request, stream) = request.resolve_request().await?;
//!     println!("{}", request.uri());
//!     # drop(stream);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! What is received is not copied: a piece of a body is the memory in which noq decrypted it.
#![forbid(unsafe_code)]

mod connection;
mod error;
mod stream;

pub use connection::{Connection, Opener};
pub use stream::{BidiStream, RecvStream, SendStream};
