//! `ranpace rnis subscribe`: a subscription for as long as the command runs, and its notifications as lines of JSON.
//!
//! Notifications come by WebSocket, so that nothing has to listen here. In the numbered form of our server each one is acknowledged when
//! it was printed, and comes again if the connection broke before; another server's plain form is read, too.

use std::fs::File;
use std::io::{Read as _, stdin};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::ValueEnum;
use ranpace_rnis::etsi::TimeStamp;
use ranpace_rnisd::api::vendor::NUMBERED;
use ranpace_rnisd::deliver::client::Client;
use ranpace_rnisd::futures_util::{SinkExt as _, StreamExt as _};
use ranpace_rnisd::hyper::Method;
use ranpace_rnisd::hyper::header::{AUTHORIZATION, HeaderValue, SEC_WEBSOCKET_PROTOCOL};
use ranpace_rnisd::tokio::time::{sleep, timeout};
use ranpace_rnisd::tokio_tungstenite::tungstenite::Message;
use ranpace_rnisd::tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use ranpace_rnisd::tokio_tungstenite::{WebSocketStream, client_async};
use ranpace_rnisd::url::Url;
use ranpace_units::{Span, Time};
use serde_json::{Value, json};

use super::ask::{self, Asker, Target};
use crate::failure::Failure;
use crate::{interrupt, output};

/// How often Ctrl-C and deadlines are looked at.
const LOOK: Duration = Duration::from_millis(100);
/// Wait before a lost WebSocket is opened again. Ours.
const RETRY: Duration = Duration::from_millis(500);

/// Subscribe, print notifications as lines of JSON, and end the subscription with Ctrl-C
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    ranpace rnis subscribe cell_change --ue-ipv4-address 10.77.0.2 --ho-status 2 --ho-status 3\n  \
    ranpace rnis subscribe meas_rep_ue --count 10\n  \
    ranpace rnis subscribe vendor_tti_meas --period 8ms --for 10s\n  \
    ranpace rnis subscribe rab_rel --qci 9 --erab-id 5 --callback http://192.0.2.1:9000/rnis\n  \
    ranpace rnis subscribe subscription.json https://mec.example --token @token")]
pub struct Subscribe {
    /// To what: cell_change, rab_est, rab_mod, rab_rel, meas_rep_ue, nr_meas_rep_ue, timing_advance_ue, ca_reconf, s1_bearer; of our
    /// extension vendor_tti_meas; or a file with the subscription as JSON (- is standard input)
    what: String,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    criteria: Criteria,
    /// Have notifications posted to this address instead of printing them here
    #[arg(long, value_name = "URL")]
    callback: Option<Url>,
    /// Ask for a test notification at the beginning
    #[arg(long)]
    test: bool,
    /// Life of the subscription, which is renewed when half of it is over
    #[arg(long, value_name = "TIME", default_value = "5min")]
    lifetime: Span,
    /// Let it expire instead of renewing it; the command then ends with it
    #[arg(long)]
    once: bool,
    /// End after this many notifications
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// End after this time
    #[arg(long = "for", value_name = "TIME")]
    duration: Option<Span>,
}

/// The criteria of the standard's filters. None selects everything.
#[derive(clap::Args)]
#[command(next_help_heading = "Criteria")]
struct Criteria {
    /// Users, by IPv4 address; repeat for several
    #[arg(long, value_name = "ADDRESS")]
    ue_ipv4_address: Vec<String>,
    /// Users, by IPv6 address
    #[arg(long, value_name = "ADDRESS")]
    ue_ipv6_address: Vec<String>,
    /// Users, by the address that NAT gives them
    #[arg(long, value_name = "ADDRESS")]
    nated_ip_address: Vec<String>,
    /// Users, by tunnel endpoint identifier
    #[arg(long, value_name = "TEID")]
    gtp_teid: Vec<String>,
    /// Cells, such as 001-01-0000001; repeat for several
    #[arg(long, value_name = "MCC-MNC-ID", value_parser = cell)]
    cell: Vec<Cell>,
    /// Stages of handovers, 1 (in preparation) to 5 (cancelled) [default: 3, completed]
    #[arg(long, value_name = "STATUS")]
    ho_status: Vec<u8>,
    /// Triggers of measurement reports, as numbers of the standard
    #[arg(long, value_name = "TRIGGER")]
    trigger: Vec<u16>,
    /// Class of bearers (rab_est, rab_mod, rab_rel)
    #[arg(long, default_value_t = 9)]
    qci: u8,
    /// Number of the bearer (rab_mod, rab_rel: one, 5 unless said otherwise; s1_bearer: any)
    #[arg(long, value_name = "ID")]
    erab_id: Vec<u32>,
    /// Events on S1: 1 set up, 2 changed, 3 released [default: all]
    #[arg(long, value_name = "EVENT")]
    s1_event: Vec<u8>,
    /// Interval between records of vendor_tti_meas
    #[arg(long, value_name = "TIME", default_value = "8ms")]
    period: Span,
    /// Only records that have changed (vendor_tti_meas)
    #[arg(long)]
    delta: bool,
}

#[derive(Clone)]
struct Cell {
    mcc: String,
    mnc: String,
    id: String,
}

fn cell(text: &str) -> Result<Cell, String> {
    let mut parts = text.splitn(3, '-').map(str::to_owned);
    match (parts.next(), parts.next(), parts.next()) {
        (Some(mcc), Some(mnc), Some(id)) if !id.is_empty() => Ok(Cell { mcc, mnc, id }),
        _ => Err("expected country code, network code and cellId, such as 001-01-0000001".to_owned()),
    }
}

/// Types of subscriptions, as the standard's list names them.
#[derive(Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
enum Kind {
    CellChange,
    RabEst,
    RabMod,
    RabRel,
    MeasRepUe,
    NrMeasRepUe,
    TimingAdvanceUe,
    CaReconf,
    S1Bearer,
    VendorTtiMeas,
}

impl Criteria {
    /// The subscription without its way of delivery.
    fn subscription(&self, kind: Kind) -> Value {
        let ids = [
            (1, &self.ue_ipv4_address),
            (2, &self.ue_ipv6_address),
            (3, &self.nated_ip_address),
            (4, &self.gtp_teid),
        ];
        let id = |(kind, values): (u8, &Vec<String>)| {
            values.iter().map(|value| json!({ "type": kind, "value": value })).collect::<Vec<_>>()
        };
        let users: Vec<Value> = ids.into_iter().flat_map(id).collect();
        let cells = |name: &str| {
            let cell = |Cell { mcc, mnc, id }: &Cell| json!({ name: id, "plmn": { "mcc": mcc, "mnc": mnc } });
            self.cell.iter().map(cell).collect::<Vec<_>>()
        };
        // A list without entries is left out: it selects everything.
        let some = |members: Vec<(&str, Value)>| {
            let is_there = |(_, value): &(&str, Value)| value.as_array().is_none_or(|list| !list.is_empty());
            let named = members.into_iter().filter(is_there).map(|(name, value)| (name.to_owned(), value));
            Value::Object(named.collect())
        };
        let (users, ecgi) = (json!(users), json!(cells("cellId")));
        let erab_id = self.erab_id.first().copied().unwrap_or(5);
        match kind {
            Kind::CellChange => json!({
                "subscriptionType": "CellChangeSubscription",
                "filterCriteriaAssocHo": some(vec![("associateId", users), ("ecgi", ecgi), ("hoStatus", json!(self.ho_status))]),
            }),
            Kind::RabEst => json!({
                "subscriptionType": "RabEstSubscription",
                "filterCriteriaQci": some(vec![("qci", json!(self.qci)), ("ecgi", ecgi)]),
            }),
            Kind::RabMod | Kind::RabRel => json!({
                "subscriptionType":
                    if matches!(kind, Kind::RabMod) { "RabModSubscription" } else { "RabRelSubscription" },
                "filterCriteriaQci": some(vec![("qci", json!(self.qci)), ("erabId", json!(erab_id)), ("ecgi", ecgi)]),
            }),
            Kind::MeasRepUe => json!({
                "subscriptionType": "MeasRepUeSubscription",
                "filterCriteriaAssocTri": some(vec![("associateId", users), ("ecgi", ecgi), ("trigger", json!(self.trigger))]),
            }),
            Kind::NrMeasRepUe => json!({
                "subscriptionType": "NrMeasRepUeSubscription",
                "filterCriteriaNrMrs": some(vec![
                    ("associateId", users),
                    ("nrcgi", json!(cells("nrcellId"))),
                    ("triggerNr", json!(self.trigger)),
                ]),
            }),
            Kind::TimingAdvanceUe | Kind::CaReconf => json!({
                "subscriptionType":
                    if matches!(kind, Kind::CaReconf) { "CaReconfSubscription" } else { "MeasTaSubscription" },
                "filterCriteriaAssoc": some(vec![("associateId", users), ("ecgi", ecgi)]),
            }),
            Kind::S1Bearer => json!({
                "subscriptionType": "S1BearerSubscription",
                "eventType": if self.s1_event.is_empty() { json!([1, 2, 3]) } else { json!(self.s1_event) },
                "S1BearerSubscriptionCriteria": some(vec![("associateId", users), ("ecgi", ecgi), ("erabId", json!(self.erab_id))]),
            }),
            Kind::VendorTtiMeas => {
                let mut records = some(vec![("associateId", users), ("ecgi", ecgi)]);
                records["subscriptionType"] = json!("VendorTtiMeasSubscription");
                records["period_us"] = json!(self.period.as_micros());
                records["delta"] = json!(self.delta);
                records
            }
        }
    }
}

/// A time from now, as the standard writes it.
fn deadline(after: Span) -> Value {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = Time::from_nanos(u64::try_from(now.as_nanos()).unwrap_or(u64::MAX));
    json!(TimeStamp::of(now + after))
}

fn duration(of: Span) -> Duration {
    Duration::from_nanos(of.as_nanos())
}

impl Subscribe {
    /// The body of the request, without its deadline.
    fn body(&self) -> Result<Value, Failure> {
        let mut body = match Kind::from_str(&self.what, false) {
            Ok(kind) => self.criteria.subscription(kind),
            Err(_) => read(&self.what)?,
        };
        let object = body.as_object_mut().ok_or_else(|| {
            Failure::asked(format!("{}: expected an object of JSON with subscriptionType", self.what))
        })?;
        if let Some(url) = &self.callback {
            object.insert("callbackReference".to_owned(), json!(url));
        } else if !object.contains_key("callbackReference") {
            object.insert("websockNotifConfig".to_owned(), json!({ "requestWebsocketUri": true }));
        }
        if object.get("subscriptionType") == Some(&json!("VendorTtiMeasSubscription")) {
            let way = if object.contains_key("callbackReference") { "callback" } else { "websocket" };
            object.entry("transport").or_insert_with(|| json!(way));
        }
        if self.test {
            object.insert("requestTestNotification".to_owned(), json!(true));
        }
        Ok(body)
    }

    /// Runs the command.
    pub fn run(self) -> Result<(), Failure> {
        let mut body = self.body()?;
        let mut asker = self.target.asker()?;
        interrupt::flag();
        interrupt::at_exit(|| {});
        body["expiryDeadline"] = deadline(self.lifetime);
        let url = asker.url("/rni/v2/subscriptions")?;
        let answer = asker.ask(Method::POST, &url, &[], Some(&body))?;
        let subscription = ask::json(&answer)?;
        let itself = link(&subscription)?;
        // The last request must not be renewed into another test.
        if let Some(object) = body.as_object_mut() {
            object.remove("requestTestNotification");
        }
        let socket = subscription["websockNotifConfig"]["websocketUri"].as_str();
        output::say(&match socket {
            Some(_) => format!("subscribed: {itself}; Ctrl-C ends it"),
            None => format!("subscribed: {itself}; notifications go to their callback; Ctrl-C ends it"),
        });
        let mut life =
            Life { body, itself, lifetime: self.lifetime, renews: !self.once, since: Instant::now() };
        let outcome = match socket {
            Some(socket) => self.print(&mut asker, socket, &mut life),
            None => self.wait(&mut asker, &mut life),
        };
        match outcome {
            // It has ended by itself.
            Ok(true) => Ok(()),
            Ok(false) => life.delete(&mut asker),
            Err(failure) => {
                // The first failure is the one to tell.
                let _ = life.delete(&mut asker);
                Err(failure)
            }
        }
    }

    /// Whether the time that was asked for is over.
    fn is_over(&self, begun: Instant) -> bool {
        interrupt::is_set() || self.duration.is_some_and(|most| begun.elapsed() >= duration(most))
    }

    /// Keeps the subscription while others get its notifications; true if it has expired.
    fn wait(&self, asker: &mut Asker, life: &mut Life) -> Result<bool, Failure> {
        let begun = Instant::now();
        while !self.is_over(begun) {
            if life.has_expired() {
                return Ok(true);
            }
            life.renew(asker)?;
            std::thread::sleep(LOOK);
        }
        Ok(false)
    }

    /// Prints notifications; true if the subscription has expired.
    fn print(&self, asker: &mut Asker, socket: &str, life: &mut Life) -> Result<bool, Failure> {
        let begun = Instant::now();
        let mut reader = Reader { printed: 0, last: 0, missed: 0 };
        let mut stream = None;
        while !self.is_over(begun) {
            life.renew(asker)?;
            let Asker { runtime, client, headers, .. } = &*asker;
            if stream.is_none() {
                match runtime.block_on(open(client, socket, headers)) {
                    Ok(opened) => stream = Some(opened),
                    Err(_) if life.has_expired() => return Ok(true),
                    Err(reason) => {
                        output::say(&format!("no WebSocket: {reason}; it is tried again"));
                        runtime.block_on(async { sleep(RETRY).await });
                        continue;
                    }
                }
            }
            let Some(open) = &mut stream else { continue };
            let is_open = runtime.block_on(async {
                match timeout(LOOK, open.next()).await {
                    Err(_) => Ok::<bool, Failure>(true),
                    Ok(Some(Ok(Message::Text(text)))) => {
                        if let Some(acknowledgement) = reader.take(&text)? {
                            return Ok(open.send(Message::Text(acknowledgement.into())).await.is_ok());
                        }
                        Ok(true)
                    }
                    Ok(Some(Ok(Message::Close(_)) | Err(_)) | None) => Ok(false),
                    Ok(Some(Ok(_))) => Ok(true),
                }
            });
            if self.count.is_some_and(|most| reader.printed >= most) {
                return Ok(false);
            }
            if !is_open? {
                stream = None;
                if life.has_expired() {
                    return Ok(true);
                }
                runtime.block_on(async { sleep(LOOK).await });
            }
        }
        Ok(false)
    }
}

/// The subscription in a file.
fn read(file: &str) -> Result<Value, Failure> {
    let mut text = String::new();
    let read = if file == "-" {
        stdin().read_to_string(&mut text)
    } else if Path::new(file).exists() {
        File::open(file).and_then(|mut file| file.read_to_string(&mut text))
    } else {
        let kinds: Vec<String> = Kind::value_variants()
            .iter()
            .filter_map(|kind| Some(kind.to_possible_value()?.get_name().to_owned()))
            .collect();
        return Err(Failure::asked(format!("expected {}, or a file; found {file:?}", kinds.join(", "))));
    };
    read.map_err(|error| Failure::asked(format!("{file}: {error}")))?;
    serde_json::from_str(&text).map_err(|error| Failure::asked(format!("{file}: {error}")))
}

/// The address of a subscription.
fn link(subscription: &Value) -> Result<Url, Failure> {
    let href = subscription["_links"]["self"]["href"].as_str().unwrap_or_default();
    href.parse()
        .map_err(|error| Failure::ours(format!("the server's link {href:?} to the subscription: {error}")))
}

/// The subscription at the server.
struct Life {
    body: Value,
    itself: Url,
    lifetime: Span,
    renews: bool,
    /// When its lifetime last began.
    since: Instant,
}

impl Life {
    fn has_expired(&self) -> bool {
        self.since.elapsed() >= duration(self.lifetime)
    }

    /// Renews it if half of its life is over.
    fn renew(&mut self, asker: &mut Asker) -> Result<(), Failure> {
        if !self.renews || self.since.elapsed() < duration(self.lifetime) / 2 {
            return Ok(());
        }
        self.since = Instant::now();
        self.body["expiryDeadline"] = deadline(self.lifetime);
        asker.ask(Method::PUT, &self.itself, &[], Some(&self.body)).map(drop)
    }

    fn delete(&self, asker: &mut Asker) -> Result<(), Failure> {
        asker.ask(Method::DELETE, &self.itself, &[], None).map(drop)
    }
}

type Stream = WebSocketStream<Box<dyn ranpace_rnisd::deliver::client::Stream>>;

/// Opens the WebSocket of a subscription.
async fn open(client: &Client, socket: &str, headers: &[(&'static str, String)]) -> Result<Stream, String> {
    let http =
        socket.strip_prefix("ws").ok_or_else(|| format!("expected ws:// or wss://, found {socket}"))?;
    let http: Url = format!("http{http}").parse().map_err(|error| format!("{socket}: {error}"))?;
    let mut request = socket.into_client_request().map_err(|error| error.to_string())?;
    request.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(NUMBERED));
    let token = headers.iter().find(|(name, _)| *name == "Authorization");
    if let Some(token) = token.and_then(|(_, value)| HeaderValue::try_from(value).ok()) {
        request.headers_mut().insert(AUTHORIZATION, token);
    }
    let stream = client.stream(&http).await.map_err(|error| error.to_string())?;
    client_async(request, stream).await.map(|(stream, _)| stream).map_err(|error| error.to_string())
}

/// Prints what arrives.
struct Reader {
    printed: u64,
    /// The number of the last one, to recognise those that come again.
    last: u64,
    missed: u64,
}

impl Reader {
    /// Takes a message, and returns what acknowledges it.
    fn take(&mut self, text: &str) -> Result<Option<String>, Failure> {
        let Ok(Value::Object(mut message)) = serde_json::from_str(text) else {
            output::say(&format!("not JSON: {text}"));
            return Ok(None);
        };
        let (Some(number), Some(notification)) =
            (message.get("number").and_then(Value::as_u64), message.remove("notification"))
        else {
            self.printed += 1;
            output::line(text)?;
            return Ok(None);
        };
        let missed = message.get("missed").and_then(Value::as_u64).unwrap_or(0);
        if missed > self.missed {
            output::say(&format!("{} notifications were missed", missed - self.missed));
            self.missed = missed;
        }
        if number > self.last {
            (self.printed, self.last) = (self.printed + 1, number);
            output::line(notification.to_string())?;
        }
        Ok(Some(json!({ "ack": number }).to_string()))
    }
}
