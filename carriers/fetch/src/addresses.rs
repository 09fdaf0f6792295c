//! Connecting to a host that has several addresses, some of which may not answer.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::time::timeout;

use crate::error::FetchError;

/// Time after which the next address is tried beside those that have not answered (RFC 8305, section 8).
const DELAY: Duration = Duration::from_millis(250);

/// The first connection that `open` makes to one of these addresses, which are tried in their order (RFC 8305, section 5). The
/// other attempts are dropped. If none succeeds, it is the last error.
pub(crate) async fn first<T, F>(
    addresses: &[SocketAddr],
    open: impl Fn(SocketAddr) -> F,
) -> Result<T, FetchError>
where
    F: Future<Output = Result<T, FetchError>>,
{
    let (mut waiting, mut running) = (addresses.iter(), FuturesUnordered::new());
    let mut error = FetchError::Options("the host has no address".to_owned());
    loop {
        match waiting.next() {
            Some(address) => running.push(open(*address)),
            None if running.is_empty() => return Err(error),
            None => {}
        }
        let patience = if waiting.len() > 0 { DELAY } else { Duration::MAX };
        match timeout(patience, running.next()).await {
            Ok(Some(Ok(connection))) => return Ok(connection),
            Ok(Some(Err(failed))) => error = failed,
            Ok(None) | Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;
    use tokio::time::Instant;

    fn refused(address: SocketAddr) -> FetchError {
        FetchError::Connection { to: address.to_string(), why: "refused".to_owned() }
    }

    #[tokio::test]
    async fn an_address_that_does_not_answer_costs_a_quarter_of_a_second_and_one_that_refuses_nothing() {
        let addresses = ["10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1"].map(|text| text.parse().unwrap());
        let began = Instant::now();
        let found = first(&addresses, async |address: SocketAddr| match address.ip().to_string().as_str() {
            "10.0.0.1" => pending().await,
            "10.0.0.2" => Err(refused(address)),
            _ => Ok(address),
        });
        assert_eq!(found.await.unwrap(), addresses[2]);
        let took = began.elapsed();
        assert!((DELAY..DELAY * 2).contains(&took), "{took:?}");
    }

    #[tokio::test]
    async fn if_none_answers_the_last_error_says_why() {
        let addresses = ["10.0.0.1:1", "10.0.0.2:1"].map(|text| text.parse().unwrap());
        let error = first(&addresses, async |address| Err::<(), _>(refused(address))).await.unwrap_err();
        assert_eq!(error.to_string(), "no connection to 10.0.0.2:1: refused");
        let error = first(&[], async |address| Err::<(), _>(refused(address))).await.unwrap_err();
        assert_eq!(error.to_string(), "the host has no address");
    }
}
