//! The members of each object are those of ETSI's file, what was written is read back, and malformed objects are refused.

use proptest::prelude::*;
use ranpace_phy::{Cqi, LteBandwidth};
use ranpace_units::{Bytes, Span};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::bearers::{PlmnInfo, RabInfo, S1BearerInfo};
use super::measured::{rsrp, rsrq, sinr, timing_advance};
use super::*;
use crate::{BearerReport, CellInfo, Event, EventKind, LinkReport, SlotReport, UserReport};

/// An object with every member of ETSI's file; members unknown to us would be lost in the round trip.
fn all_members() -> Vec<(&'static str, Value)> {
    let plmn = json!({ "mcc": "001", "mnc": "01" });
    let ecgi = json!({ "cellId": "ACBDEFA", "plmn": plmn });
    let user = json!([{ "type": 1, "value": "10.100.0.1" }]);
    let time = json!({ "seconds": 1_977_836_800, "nanoSeconds": 7 });
    let temp = json!({ "mmec": "0", "mtmsi": "1234" });
    let qos = json!({ "qci": 7, "qosInformation": { "erabGbrDl": 1, "erabGbrUl": 2, "erabMbrDl": 3, "erabMbrUl": 10_000_000_000_u64 } });
    let tunnel = json!({ "ipAddress": "192.0.2.1", "tunnelId": "1111" });
    let bearer = json!([{ "enbInfo": tunnel, "erabId": 5, "sGwInfo": tunnel }]);
    let nr = json!({ "rsrp": 60, "rsrq": 50, "sinr": 90 });
    let beams = json!({
        "resultsCsiRsIndexes": { "resultsPerCsiRsIndex": [{ "csiRsIndex": 1, "csiRsResults": nr }] },
        "resultsSsbIndexes": { "resultsPerSsbIndex": [{ "ssbIndex": 2, "ssbResults": nr }] },
    });
    let nr_cell = json!({
        "measQuantityResultsCsiRsCell": nr, "measQuantityResultsSsbCell": nr, "rsIndexResults": beams,
    });
    let nrcgi = json!({ "nrcellId": "500000001", "plmn": plmn });
    let carrier = json!([{
        "cellIdNei": "B", "cellIdSrv": "A", "rsrpNei": 1, "rsrpNeiEx": 2, "rsrpSrv": 3, "rsrpSrvEx": -4,
        "rsrqNei": 5, "rsrqNeiEx": 6, "rsrqSrv": 7, "rsrqSrvEx": 8, "sinrNei": 9, "sinrSrv": 10,
    }]);
    let links = json!({ "self": { "href": "http://a/rni/v2/subscriptions/1" } });
    let notification = |kind: &str, members: Value| {
        let mut object = members;
        object["notificationType"] = json!(kind);
        object["timeStamp"] = time.clone();
        object
    };
    let subscription = |kind: &str, filter: &str, members: Value| {
        let mut object = json!({
            "subscriptionType": kind, "callbackReference": "http://b", "_links": links, "expiryDeadline": time,
        });
        object[filter] = members;
        object
    };
    let filter = |mut members: Value| {
        members["appInstanceId"] = json!("myApp");
        members["ecgi"] = json!([ecgi]);
        members
    };
    let of_user = |mut members: Value| {
        members["associateId"] = user.clone();
        members
    };
    let mut s1 = subscription(
        "S1BearerSubscription",
        "S1BearerSubscriptionCriteria",
        json!({ "associateId": user, "ecgi": [ecgi], "erabId": [5, 6] }),
    );
    s1["eventType"] = json!([1, 2, 3]);
    vec![
        (
            "RabInfo",
            json!({
                "appInstanceId": "myApp", "requestId": "1", "timeStamp": time,
                "cellUserInfo": [{ "ecgi": ecgi, "ueInfo": [{ "associateId": user, "erabInfo": [{ "erabId": 5, "erabQosParameters": qos }] }] }],
            }),
        ),
        ("PlmnInfo", json!({ "appInstanceId": "myApp", "plmn": [plmn], "timeStamp": time })),
        (
            "S1BearerInfo",
            json!({
                "timeStamp": time,
                "s1UeInfo": [{ "tempUeId": temp, "associateId": user, "ecgi": [ecgi], "s1BearerInfoDetailed": bearer }],
            }),
        ),
        (
            "Notification",
            notification(
                "RabEstNotification",
                json!({
                    "associateId": user, "ecgi": ecgi, "erabId": 5, "erabQosParameters": qos, "tempUeId": temp,
                }),
            ),
        ),
        (
            "Notification",
            notification(
                "RabModNotification",
                json!({
                    "associateId": user, "ecgi": ecgi, "erabId": 5, "erabQosParameters": qos,
                }),
            ),
        ),
        (
            "Notification",
            notification(
                "RabRelNotification",
                json!({
                    "associateId": user, "ecgi": ecgi, "erabReleaseInfo": { "erabId": 5 },
                }),
            ),
        ),
        (
            "Notification",
            notification(
                "MeasRepUeNotification",
                json!({
                    "associateId": user, "ecgi": ecgi, "rsrp": 60, "rsrpEx": 61, "rsrq": 20, "rsrqEx": 21, "sinr": 70, "trigger": 12,
                    "heightUe": 300, "carrierAggregationMeasInfo": carrier,
                    "eutranNeighbourCellMeasInfo": [{ "ecgi": ecgi, "rsrp": 1, "rsrpEx": 2, "rsrq": 3, "rsrqEx": 4, "sinr": 5 }],
                    "newRadioMeasInfo": [{
                        "nrCarrierFreq": 640_000,
                        "nrBNCs": { "nrBNCellInfo": [{ "nrBNCellGId": "C", "nrBNCellPlmn": [plmn] }], "nrBNCellRsrp": 1, "nrBNCellRsrq": 2, "nrBNCellRssi": 3 },
                        "nrSCs": { "nrSCellInfo": [{ "nrSCellGId": "D", "nrSCellPlmn": [plmn] }], "nrSCellRsrp": 1, "nrSCellRsrq": 2, "nrSCellRssi": 3 },
                    }],
                    "newRadioMeasNeiInfo": [{
                        "nrNCellInfo": [{ "nrNCellGId": "E", "nrNCellPlmn": [plmn] }], "nrNCellRsrp": 1, "nrNCellRsrq": 2, "nrNCellRssi": 3, "rsIndexResults": beams,
                    }],
                }),
            ),
        ),
        (
            "Notification",
            notification(
                "NrMeasRepUeNotification",
                json!({
                    "associateId": user, "triggerNr": 31,
                    "eutraNeighCellMeasInfo": [{ "ecgi": ecgi, "rsrp": 1, "rsrq": 2, "sinr": 3 }],
                    "nrNeighCellMeasInfo": [{ "nrcgi": nrcgi, "measQuantityResultsCsiRsCell": nr, "measQuantityResultsSsbCell": nr, "rsIndexResults": beams }],
                    "servCellMeasInfo": [{ "nCell": nr_cell, "nrcgi": nrcgi, "sCell": nr_cell }],
                }),
            ),
        ),
        (
            "Notification",
            notification(
                "MeasTaNotification",
                json!({ "associateId": user, "ecgi": ecgi, "timingAdvance": 40 }),
            ),
        ),
        (
            "Notification",
            notification(
                "CaReconfNotification",
                json!({
                    "associateId": user, "ecgi": ecgi, "carrierAggregationMeasInfo": carrier,
                    "secondaryCellAdd": [{ "ecgi": ecgi }], "secondaryCellRemove": [{ "ecgi": ecgi }],
                }),
            ),
        ),
        (
            "Notification",
            notification(
                "S1BearerNotification",
                json!({
                    "s1Event": 2, "s1UeInfo": { "associateId": user, "ecgi": [ecgi], "s1BearerInfo": bearer, "tempUeId": temp },
                }),
            ),
        ),
        (
            "Subscription",
            subscription("RabEstSubscription", "filterCriteriaQci", filter(json!({ "qci": 9 }))),
        ),
        (
            "Subscription",
            subscription("RabModSubscription", "filterCriteriaQci", filter(json!({ "qci": 9, "erabId": 5 }))),
        ),
        (
            "Subscription",
            subscription("RabRelSubscription", "filterCriteriaQci", filter(json!({ "qci": 9, "erabId": 5 }))),
        ),
        (
            "Subscription",
            subscription(
                "MeasRepUeSubscription",
                "filterCriteriaAssocTri",
                of_user(filter(json!({ "trigger": [0, 61] }))),
            ),
        ),
        (
            "Subscription",
            subscription(
                "NrMeasRepUeSubscription",
                "filterCriteriaNrMrs",
                of_user(json!({ "appInstanceId": "myApp", "nrcgi": [nrcgi], "triggerNr": [1, 12] })),
            ),
        ),
        (
            "Subscription",
            subscription("MeasTaSubscription", "filterCriteriaAssoc", of_user(filter(json!({})))),
        ),
        (
            "Subscription",
            subscription("CaReconfSubscription", "filterCriteriaAssoc", of_user(filter(json!({})))),
        ),
        ("Subscription", s1),
    ]
}

fn again<T: Serialize + DeserializeOwned>(value: &Value) -> Result<Value, String> {
    let read: T = serde_json::from_value(value.clone()).map_err(|error| error.to_string())?;
    let written = serde_json::to_value(&read).expect("what was read can be written");
    // And what is in a text as well.
    let text: T = serde_json::from_str(&written.to_string()).expect("and read again");
    assert_eq!(serde_json::to_value(&text).unwrap(), written);
    Ok(written)
}

fn read_again(kind: &str, value: &Value) -> Result<Value, String> {
    match kind {
        "RabInfo" => again::<RabInfo>(value),
        "PlmnInfo" => again::<PlmnInfo>(value),
        "S1BearerInfo" => again::<S1BearerInfo>(value),
        "Notification" => again::<Notification>(value),
        _ => again::<Subscription>(value),
    }
}

#[test]
fn every_member_of_the_standard_is_read_and_written() {
    for (kind, value) in all_members() {
        assert_eq!(read_again(kind, &value).as_ref(), Ok(&value), "{kind}");
        // An unknown member does not prevent reading it.
        let mut more = value.clone();
        more["x-of-tomorrow"] = json!({ "a": [1] });
        assert_eq!(read_again(kind, &more).as_ref(), Ok(&value), "{kind}");
    }
}

#[test]
fn what_must_be_there_is_asked_for_and_numbers_are_those_of_the_lists() {
    let all = all_members();
    let of = |name: &str| {
        let is_it = |value: &Value| value["notificationType"] == name || value["subscriptionType"] == name;
        all.iter().find(|(kind, value)| *kind == name || is_it(value)).unwrap()
    };
    for (name, member) in [
        ("RabInfo", "appInstanceId"),
        ("RabInfo", "requestId"),
        ("PlmnInfo", "plmn"),
        ("S1BearerInfo", "s1UeInfo"),
        ("RabModNotification", "erabId"),
        ("MeasRepUeNotification", "rsrp"),
        ("MeasRepUeNotification", "rsrq"),
        ("MeasRepUeNotification", "trigger"),
        ("NrMeasRepUeNotification", "triggerNr"),
        ("MeasTaNotification", "timingAdvance"),
        ("CaReconfNotification", "ecgi"),
        ("S1BearerNotification", "s1Event"),
        ("RabEstSubscription", "callbackReference"),
        ("S1BearerSubscription", "eventType"),
        ("S1BearerSubscription", "S1BearerSubscriptionCriteria"),
    ] {
        let (kind, mut value) = of(name).clone();
        value.as_object_mut().unwrap().remove(member).unwrap();
        let error = read_again(kind, &value).unwrap_err();
        assert!(error.contains(member), "{name} without {member}: {error}");
    }
    for (name, member, wrong, expected) in [
        ("MeasRepUeNotification", "trigger", json!(16), "a trigger of TS 36.331"),
        ("MeasRepUeNotification", "trigger", json!(256), "a trigger of TS 36.331"),
        ("NrMeasRepUeNotification", "triggerNr", json!(40), "a trigger of TS 38.331"),
        ("S1BearerNotification", "s1Event", json!(0), "an event from 1 to 3"),
        ("MeasTaNotification", "timingAdvance", json!(3_000_000_000_u64), "i32"),
        ("MeasTaNotification", "timingAdvance", json!(1.5), "i32"),
        ("RabModNotification", "erabId", json!(-5), "u32"),
        ("RabModNotification", "ecgi", json!([]), "Ecgi"),
        ("CaReconfNotification", "secondaryCellAdd", json!({}), "sequence"),
    ] {
        let (kind, mut value) = of(name).clone();
        value[member] = wrong.clone();
        let error = read_again(kind, &value).unwrap_err();
        assert!(error.contains(expected), "{name} with {member} {wrong}: {error}");
    }
    let nested = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(serde_json::from_str::<Notification>(&nested).is_err());
}

/// The ends of TS 36.133's tables of RSRP (9.1.4-1), RSRQ (9.1.7-1), RS-SINR and timing advance.
#[test]
fn quantities_are_in_the_steps_of_the_standard() {
    for (dbm, step) in
        [(-140.1, 0), (-140.0, 1), (-139.0, 2), (-44.1, 96), (-44.0, 97), (0.0, 97), (f64::NAN, 0)]
    {
        assert_eq!(rsrp(dbm), step, "{dbm} dBm");
    }
    for (db, step) in [(-19.6, 0), (-19.5, 1), (-3.5, 33), (-3.0, 34), (f64::INFINITY, 34)] {
        assert_eq!(rsrq(db), step, "{db} dB");
    }
    for (db, step) in [(-23.1, 0), (-23.0, 1), (-22.5, 2), (39.5, 126), (40.0, 127), (f64::NEG_INFINITY, 0)] {
        assert_eq!(sinr(db), step, "{db} dB");
    }
    // 2 Ts are 65.1 ns; 4096 Ts are 133.33 us.
    for (ns, step) in
        [(0, 0), (65, 0), (66, 1), (133_333, 2_047), (133_334, 2_048), (133_600, 2_049), (1 << 50, 7_690)]
    {
        assert_eq!(timing_advance(Span::from_nanos(ns)), step, "{ns} ns");
    }
}

struct Numbers;

impl Names for Numbers {
    fn ecgi(&self, cell: u16) -> Ecgi {
        let plmn = Plmn { mcc: "001".to_owned(), mnc: format!("{:02}", cell / 2) };
        Ecgi { cell_id: format!("{cell:07X}"), plmn }
    }
    fn user(&self, user: u32) -> Vec<AssociateId> {
        vec![AssociateId { id_type: IdType::UeIpv4, value: format!("10.0.0.{user}") }]
    }
}

#[test]
fn a_cell_tells_of_bearers_networks_and_handovers() {
    let link = LinkReport::default();
    let row = |user| UserReport {
        user,
        rnti: 1,
        cqi: Cqi::MAX,
        cqi_time: Time::ZERO,
        capacity: 1.0,
        link: Both { downlink: link, uplink: link },
    };
    let bearer = |user, bearer, direction| BearerReport {
        user,
        bearer,
        direction,
        queue: Bytes::ZERO,
        head_of_line: Span::ZERO,
        buffer: None,
    };
    let (down, up) = (Direction::Downlink, Direction::Uplink);
    let report = SlotReport {
        cell: &CellInfo::lte(3, LteBandwidth::Mhz5),
        slot: 0,
        time: Time::from_millis(1_500),
        symbols: Both::of(|_| 14),
        used_prbs: Both::default(),
        active_users: Both::default(),
        users: &[row(1), row(2)],
        bearers: &[
            bearer(1, 0, down),
            bearer(1, 0, up),
            bearer(1, 1, down),
            bearer(1, 1, up),
            bearer(2, 0, down),
        ],
        full: true,
    };
    let info = rab_info("myApp", "7", &report, &Numbers);
    let erabs = |user: usize| -> Vec<u32> {
        let bearers = &info.cell_user_info[0].ue_info[user].erab_info;
        bearers.iter().filter_map(|bearer| bearer.erab_id).collect()
    };
    assert_eq!((erabs(0), erabs(1)), (vec![5, 6], vec![5]));
    assert_eq!(info.cell_user_info[0].ecgi, Some(Numbers.ecgi(3)));
    let value = serde_json::to_value(&info).unwrap();
    assert_eq!(
        value["cellUserInfo"][0]["ueInfo"][1]["erabInfo"][0],
        json!({ "erabId": 5, "erabQosParameters": { "qci": 9 } })
    );
    assert_eq!(value["timeStamp"], json!({ "seconds": 1, "nanoSeconds": 500_000_000 }));

    let info = plmn_info("myApp", TimeStamp::default(), [0, 1, 2].map(|cell| Numbers.ecgi(cell)));
    assert_eq!(info.plmn.len(), 2, "cells 0 and 1 are of one network");

    let of = |kind| event(&Event { time: report.time, cell: 3, user: 1, kind }, &Numbers);
    assert_eq!(of(EventKind::Attached), None);
    let Some(Notification::RabEst { erab_id: 6, ecgi, .. }) = of(EventKind::BearerSetUp { bearer: 1 }) else {
        panic!()
    };
    assert_eq!(ecgi, Numbers.ecgi(3));
    for (kind, from, to, status) in [
        (EventKind::HandoverBegun { to: 4 }, 3, 4, HoStatus::InExecution),
        (EventKind::HandoverCompleted { from: 2 }, 2, 3, HoStatus::Completed),
    ] {
        let Some(Notification::CellChange { src_ecgi, trg_ecgi, ho_status, .. }) = of(kind) else { panic!() };
        assert_eq!((src_ecgi, trg_ecgi, ho_status), (Numbers.ecgi(from), vec![Numbers.ecgi(to)], status));
    }
}

proptest! {
    /// Any member of any kind in the place of another is read or refused.
    #[test]
    fn any_member_is_read_or_refused(which in 0..19_usize, at in 0..80_usize, number in any::<f64>(), text in ".{0,10}") {
        let all = all_members();
        let (kind, mut value) = all[which % all.len()].clone();
        let replacements = [json!(number), json!(number as i64), json!(text), json!(null), json!([]), json!({}), json!([[1]])];
        let mut place = at;
        super::tests::replace(&mut value, &mut place, &replacements[at % replacements.len()]);
        read_again(kind, &value).ok();
    }

    #[test]
    fn any_text_is_read_or_refused(text in ".{0,200}") {
        serde_json::from_str::<RabInfo>(&text).ok();
        serde_json::from_str::<PlmnInfo>(&text).ok();
        serde_json::from_str::<S1BearerInfo>(&text).ok();
    }
}
