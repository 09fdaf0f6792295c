//! Subscriptions of all types: made, read, listed, changed and ended.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::support::bed::{Bed, cell_change, ecgi, ids};

/// Nobody listens there, and nothing is sent: nothing happens in these tests.
const CALLBACK: &str = "http://192.88.100.1/callback";

/// All types: name of the type, name in the list's query, the filter's member, a filter, and members of it that are required.
fn types() -> Vec<(&'static str, &'static str, &'static str, Value, Vec<&'static str>)> {
    let user = json!([ids(0)[0]]);
    let cells = json!([ecgi(0)]);
    let nrcgi = json!([{ "nrcellId": "0000001", "plmn": { "mcc": "001", "mnc": "01" } }]);
    vec![
        (
            "CellChangeSubscription",
            "cell_change",
            "filterCriteriaAssocHo",
            json!({ "associateId": user, "ecgi": cells, "hoStatus": [1, 3] }),
            vec![],
        ),
        (
            "RabEstSubscription",
            "rab_est",
            "filterCriteriaQci",
            json!({ "qci": 9, "ecgi": cells }),
            vec!["qci"],
        ),
        (
            "RabModSubscription",
            "rab_mod",
            "filterCriteriaQci",
            json!({ "qci": 9, "erabId": 5, "ecgi": cells }),
            vec!["qci", "erabId"],
        ),
        (
            "RabRelSubscription",
            "rab_rel",
            "filterCriteriaQci",
            json!({ "qci": 9, "erabId": 5, "ecgi": cells }),
            vec!["qci", "erabId"],
        ),
        (
            "MeasRepUeSubscription",
            "meas_rep_ue",
            "filterCriteriaAssocTri",
            json!({ "associateId": user, "ecgi": cells, "trigger": [1, 12] }),
            vec![],
        ),
        (
            "NrMeasRepUeSubscription",
            "nr_meas_rep_ue",
            "filterCriteriaNrMrs",
            json!({ "associateId": user, "nrcgi": nrcgi, "triggerNr": [1] }),
            vec![],
        ),
        (
            "MeasTaSubscription",
            "timing_advance_ue",
            "filterCriteriaAssoc",
            json!({ "associateId": user, "ecgi": cells }),
            vec![],
        ),
        (
            "CaReconfSubscription",
            "ca_reconf",
            "filterCriteriaAssoc",
            json!({ "associateId": user, "ecgi": cells }),
            vec![],
        ),
        (
            "S1BearerSubscription",
            "s1_bearer",
            "S1BearerSubscriptionCriteria",
            json!({ "associateId": user, "ecgi": cells, "erabId": [5] }),
            vec![],
        ),
    ]
}

fn body(kind: &str, member: &str, filter: &Value) -> Value {
    let mut body = json!({ "subscriptionType": kind, "callbackReference": CALLBACK, member: filter });
    if kind == "S1BearerSubscription" {
        body["eventType"] = json!([1, 2, 3]);
    }
    body
}

/// Now plus some seconds, as a `TimeStamp`.
pub fn in_seconds(seconds: i64) -> Value {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    json!({ "seconds": now.saturating_add_signed(seconds), "nanoSeconds": 0 })
}

#[test]
fn subscriptions_of_all_types_are_made_read_listed_changed_and_ended() {
    let bed = Bed::new("");
    let root = bed.server().root();
    for (kind, name, member, filter, _) in types() {
        let wanted = body(kind, member, &filter);
        let made = bed.ask("POST", "/subscriptions", Some(&wanted)).expect(201);
        let path = bed.path_of(&made);
        let mut expected = wanted.clone();
        expected["_links"] = json!({ "self": { "href": format!("{root}/rni/v2{path}") } });
        assert_eq!(made.json(), expected);
        let etag = made.header("etag").unwrap().to_owned();
        let read = bed.get(&path).expect(200);
        assert_eq!((read.json(), read.header("etag")), (expected.clone(), Some(etag.as_str())));
        let listed = bed.get(&format!("/subscriptions?subscription_type={name}")).expect(200).json();
        let link = json!([{ "href": format!("{root}/rni/v2{path}"), "subscriptionType": kind }]);
        assert_eq!(listed["_links"]["subscription"], link, "{kind}");

        let mut changed = wanted.clone();
        changed["expiryDeadline"] = in_seconds(600);
        let put = |etag: &str, body: &Value| {
            let path = format!("/rni/v2{path}");
            bed.connect().ask("PUT", &path, &[("If-Match", etag)], Some(body.to_string().as_bytes()))
        };
        put("\"another\"", &changed).expect(412);
        let answer = put(&etag, &changed).expect(200);
        assert_eq!(answer.json()["expiryDeadline"], changed["expiryDeadline"]);
        assert_ne!(answer.header("etag"), Some(etag.as_str()));
        put(&etag, &changed).expect(412);
        // Without a condition it is changed as well, but not into another type.
        bed.ask("PUT", &path, Some(&wanted)).expect(200);
        let other =
            if kind == "CellChangeSubscription" { "MeasTaSubscription" } else { "CellChangeSubscription" };
        let other_member =
            if kind == "CellChangeSubscription" { "filterCriteriaAssoc" } else { "filterCriteriaAssocHo" };
        bed.ask("PUT", &path, Some(&body(other, other_member, &json!({})))).expect(422);
        assert!(bed.ask("DELETE", &path, None).expect(204).body.is_empty());
        bed.get(&path).expect(404);
        bed.ask("DELETE", &path, None).expect(404);
        bed.ask("PUT", &path, Some(&wanted)).expect(404);
    }
    assert!(bed.get("/subscriptions").expect(200).json()["_links"].get("subscription").is_none());
    bed.get("/subscriptions?subscription_type=cell_changed").expect(400);
    bed.get("/subscriptions?type=cell_change").expect(400);
}

#[test]
fn members_that_the_description_requires_are_required() {
    let bed = Bed::new("");
    let post = |body: &Value| bed.ask("POST", "/subscriptions", Some(body));
    for (kind, _, member, filter, required) in types() {
        let whole = body(kind, member, &filter);
        let mut members = vec!["subscriptionType", "callbackReference", member];
        if kind == "S1BearerSubscription" {
            members.push("eventType");
        }
        for missing in members {
            let mut lacking = whole.clone();
            lacking.as_object_mut().unwrap().remove(missing);
            post(&lacking).expect(400);
        }
        for missing in required {
            let mut lacking = whole.clone();
            lacking[member].as_object_mut().unwrap().remove(missing);
            post(&lacking).expect(400);
        }
    }
    let mut s1 = body("S1BearerSubscription", "S1BearerSubscriptionCriteria", &json!({}));
    for wrong in [json!([]), json!([4]), json!("1")] {
        s1["eventType"] = wrong;
        post(&s1).expect(400);
    }
    let ho = |filter: Value| body("CellChangeSubscription", "filterCriteriaAssocHo", &filter);
    for wrong in [
        json!({ "hoStatus": [6] }),
        json!({ "associateId": [{ "type": 5, "value": "a" }] }),
        json!({ "associateId": ids(0)[0] }),
        json!({ "ecgi": [{ "cellId": "1" }] }),
    ] {
        post(&ho(wrong)).expect(400);
    }
    for wrong in ["", "[]", "{", "7", "{\"subscriptionType\":\"NoSubscription\"}"] {
        let reply = bed.connect().ask("POST", "/rni/v2/subscriptions", &[], Some(wrong.as_bytes()));
        reply.expect(400);
    }
    let text = cell_change(CALLBACK).to_string();
    let xml = [("Content-Type", "text/xml")];
    bed.connect().ask("POST", "/rni/v2/subscriptions", &xml, Some(text.as_bytes())).expect(415);
}

#[test]
fn an_empty_filter_of_handovers_is_completed_with_its_default() {
    let bed = Bed::new("");
    let made = bed.ask("POST", "/subscriptions", Some(&cell_change(CALLBACK))).expect(201).json();
    assert_eq!(made["filterCriteriaAssocHo"]["hoStatus"], json!([3]));
}

#[test]
fn both_spellings_of_changes_of_carriers_are_accepted() {
    let bed = Bed::new("");
    for spelling in ["CaReconfSubscription", "CaReConfSubscription"] {
        let wanted = body(spelling, "filterCriteriaAssoc", &json!({}));
        let made = bed.ask("POST", "/subscriptions", Some(&wanted)).expect(201).json();
        assert_eq!(made["subscriptionType"], "CaReconfSubscription");
    }
    let listed = bed.get("/subscriptions?subscription_type=ca_reconf").expect(200).json();
    assert_eq!(listed["_links"]["subscription"].as_array().unwrap().len(), 2);
}

#[test]
fn deadlines_are_checked_and_bounded() {
    let bed = Bed::new("[subscriptions]\nlongest = \"1h\"\n");
    let mut wanted = cell_change(CALLBACK);
    wanted["expiryDeadline"] = in_seconds(-5);
    bed.ask("POST", "/subscriptions", Some(&wanted)).expect(422);
    wanted["expiryDeadline"] = json!({ "seconds": 4_000_000_000_u32, "nanoSeconds": 1_000_000_000 });
    bed.ask("POST", "/subscriptions", Some(&wanted)).expect(400);
    for (asked, expected) in [(None, 3600), (Some(7200), 3600), (Some(600), 600)] {
        wanted.as_object_mut().unwrap().remove("expiryDeadline");
        if let Some(asked) = asked {
            wanted["expiryDeadline"] = in_seconds(asked);
        }
        let made = bed.ask("POST", "/subscriptions", Some(&wanted)).expect(201).json();
        let given = made["expiryDeadline"]["seconds"].as_i64().unwrap();
        let apart = given - in_seconds(expected)["seconds"].as_i64().unwrap();
        assert!((-2..=2).contains(&apart), "{asked:?}: {apart}");
    }
}

#[test]
fn the_older_version_has_no_web_sockets() {
    let bed = Bed::new("version = \"2.1.1\"\n");
    let mut wanted = cell_change(CALLBACK);
    wanted["websockNotifConfig"] = json!({ "requestWebsocketUri": true });
    let made = bed.ask("POST", "/subscriptions", Some(&wanted)).expect(201);
    assert!(made.json().get("websockNotifConfig").is_none());
    assert_eq!(made.header("version"), Some("2.1.1"));
    wanted.as_object_mut().unwrap().remove("callbackReference");
    bed.ask("POST", "/subscriptions", Some(&wanted)).expect(400);
}
