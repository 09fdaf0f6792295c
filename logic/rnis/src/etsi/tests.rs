//! The standard's names and numbers, what a query selects, and malformed text.

use proptest::prelude::*;
use ranpace_phy::LteBandwidth;
use ranpace_units::{Bytes, Span};
use serde_json::{Value, json};

use super::*;
use crate::{CellInfo, RadioHint};

fn ecgi(id: &str) -> Ecgi {
    Ecgi { cell_id: id.to_owned(), plmn: Plmn { mcc: "001".to_owned(), mnc: "01".to_owned() } }
}

fn user(address: &str) -> AssociateId {
    AssociateId { id_type: IdType::UeIpv4, value: address.to_owned() }
}

fn measures() -> L2Meas {
    let of_user = |address, cell, throughput| L2MeasCellUe {
        associate_id: user(address),
        info: L2MeasCellUEInfo {
            ecgi: Some(ecgi(cell)),
            dl_nongbr_throughput_ue: Some(throughput),
            ul_nongbr_throughput_ue: Some(1),
            ..L2MeasCellUEInfo::default()
        },
    };
    let used = Both { downlink: 20.0, uplink: 0.0 };
    L2Meas {
        cell_info: ["A", "B"].map(|id| L2MeasCellInfo::of(ecgi(id), 25, used, Both::default())).to_vec(),
        cell_ue_info: vec![
            of_user("10.0.0.1", "A", 15_000),
            of_user("10.0.0.2", "A", 7),
            of_user("10.0.0.3", "B", 9),
        ],
        time_stamp: Some(TimeStamp { seconds: 1_977_836_800, nano_seconds: 5 }),
    }
}

/// Test N-2: a query for one user and two measures returns these and the time; names are those of ETSI's file.
#[test]
fn a_query_has_what_was_asked_for_and_nothing_else() {
    let parameters = [
        ("app_ins_id", "myApp"),
        ("ue_ipv4_address", "10.0.0.1"),
        ("dl_total_prb_usage_cell", "1"),
        ("dl_nongbr_throughput_ue", ""),
    ];
    let selected = L2Query::parse(parameters).unwrap().select(&measures());
    let cell = json!({ "cellId": "A", "plmn": { "mcc": "001", "mnc": "01" } });
    let expected = json!({
        "cellInfo": [{ "ecgi": cell, "dl_total_prb_usage_cell": 80 }],
        "cellUEInfo": [{
            "associateId": { "type": 1, "value": "10.0.0.1" }, "ecgi": cell, "dl_nongbr_throughput_ue": 15_000,
        }],
        "timeStamp": { "seconds": 1_977_836_800, "nanoSeconds": 5 },
    });
    assert_eq!(serde_json::to_value(&selected).unwrap(), expected);
    assert_eq!(serde_json::from_value::<L2Meas>(expected).unwrap(), selected);
}

#[test]
fn a_query_is_of_users_cells_and_measures() {
    let all = measures();
    let count = |parameters: &[(&str, &str)]| {
        let selected = L2Query::parse(parameters.iter().copied()).unwrap().select(&all);
        (selected.cell_info.len(), selected.cell_ue_info.len())
    };
    for (parameters, expected) in [
        (&[][..], (2, 3)),
        (&[("cell_id", "A")], (1, 2)),
        (&[("cell_id", "A,B")], (2, 3)),
        (&[("ue_ipv4_address", "10.0.0.3, 10.0.0.2")], (2, 2)),
        (&[("ue_ipv4_address", "10.0.0.3"), ("cell_id", "A")], (0, 0)),
        (&[("ue_ipv6_address", "10.0.0.3")], (0, 0)),
        (&[("ul_total_prb_usage_cell", "")], (2, 0)),
        (&[("ul_total_prb_usage_cell", "false"), ("ul_nongbr_throughput_ue", "true")], (0, 3)),
        (&[("dl_gbr_delay_ue", "")], (0, 0)),
    ] {
        assert_eq!(count(parameters), expected, "{parameters:?}");
    }
    let error = L2Query::parse([("dl_prb_usage", "")]).unwrap_err();
    assert!(error.to_string().ends_with("found \"dl_prb_usage\""), "{error}");
}

/// Test N-4: of 25 PRBs, 20 and 0 granted leave 5; so does a usage of 80 %.
#[test]
fn what_is_unused_follows_from_the_usage() {
    let used = Both { downlink: 20.0 + 0.0, uplink: 12.5 };
    let info = L2MeasCellInfo::of(ecgi("A"), 25, used, Both { downlink: 2, uplink: 1 });
    assert_eq!(info.dl_total_prb_usage_cell, Some(80));
    assert_eq!(info.unused_prbs(25, Direction::Downlink), Some(5.0));
    assert_eq!(info.unused_prbs(25, Direction::Uplink), Some(12.5));
    assert_eq!(L2MeasCellInfo::default().unused_prbs(25, Direction::Downlink), None);
    let too_much = L2MeasCellInfo { dl_total_prb_usage_cell: Some(u32::MAX), ..info };
    assert_eq!(too_much.unused_prbs(25, Direction::Downlink), Some(0.0));
    let absurd = L2MeasCellInfo::of(ecgi("A"), 0, Both { downlink: f64::NAN, uplink: -1.0 }, Both::default());
    assert_eq!((absurd.dl_total_prb_usage_cell, absurd.ul_total_prb_usage_cell), (Some(0), Some(0)));
}

#[test]
fn a_notification_of_a_handover_is_the_standards() {
    let notification = Notification::CellChange {
        associate_id: vec![user("10.100.0.1")],
        ho_status: HoStatus::Completed,
        src_ecgi: ecgi("ACBDEFA"),
        temp_ue_id: None,
        time_stamp: Some(TimeStamp::of(Time::from_nanos(1_500_000_000))),
        trg_ecgi: vec![ecgi("FEDCBAA")],
    };
    let plmn = json!({ "mcc": "001", "mnc": "01" });
    let expected = json!({
        "notificationType": "CellChangeNotification",
        "associateId": [{ "type": 1, "value": "10.100.0.1" }],
        "hoStatus": 3,
        "srcEcgi": { "cellId": "ACBDEFA", "plmn": plmn },
        "timeStamp": { "seconds": 1, "nanoSeconds": 500_000_000 },
        "trgEcgi": [{ "cellId": "FEDCBAA", "plmn": plmn }],
    });
    assert_eq!(serde_json::to_value(&notification).unwrap(), expected);
    assert_eq!(serde_json::from_value::<Notification>(expected).unwrap(), notification);
}

#[test]
fn subscriptions_are_read_with_members_that_we_do_not_know() {
    // As in the example of ETSI's file, and with numbers as text.
    let text = json!({
        "subscriptionType": "CellChangeSubscription",
        "callbackReference": "http://my.callback.com/rni-cell-change/some-id",
        "filterCriteriaAssocHo": {
            "appInstanceId": "myApp",
            "associateId": [{ "type": "1_UE_IPV4_ADDRESS", "value": "10.100.0.1" }],
            "ecgi": [{ "plmn": { "mnc": "01", "mcc": "001" }, "cellId": "ACBDEFA" }],
            "hoStatus": [1, "2"],
        },
        "expiryDeadline": { "seconds": 1_977_836_800, "nanoSeconds": 0 },
        "websockNotifConfig": { "requestWebsocketUri": true },
    });
    let Subscription::CellChange { filter_criteria_assoc_ho: filter, links, .. } =
        serde_json::from_value(text).unwrap()
    else {
        panic!("another subscription");
    };
    assert_eq!(filter.associate_id, [user("10.100.0.1")]);
    assert_eq!(filter.ho_status, [HoStatus::InPreparation, HoStatus::InExecution]);
    assert_eq!(links, None);
    for (case, wrong) in [
        ("a type that there is not", json!({ "type": 5, "value": "" })),
        ("a type that is no number", json!({ "type": "IPv4", "value": "" })),
        ("a negative type", json!({ "type": -1, "value": "" })),
        ("no value", json!({ "type": 1 })),
    ] {
        assert!(serde_json::from_value::<AssociateId>(wrong).is_err(), "{case}");
    }
}

#[test]
fn the_extension_stands_beside_the_standard() {
    let info = CellInfo::lte(0, LteBandwidth::Mhz5);
    let config = serde_json::to_value(vendor::CellConfig::of(ecgi("A"), &info)).unwrap();
    assert_eq!(
        (&config["technology"], &config["prbs"], &config["ttiNs"], &config["harqProcessesDl"]),
        (&json!("lte"), &json!(25), &json!(1_000_000), &json!(8))
    );
    let hint = RadioHint {
        granted: 12.5,
        tbs_bits: Some(18_336),
        queue: Bytes::new(3_000),
        ..RadioHint::of(info, Time::ZERO + Span::from_millis(8))
    };
    let meas = vendor::TtiMeas::of(
        user("10.0.0.1"),
        ecgi("A"),
        &Both { downlink: hint, uplink: RadioHint::of(info, Time::ZERO) },
    );
    let notification = Notification::VendorTtiMeas { meas: vec![meas], time_stamp: None };
    let value = serde_json::to_value(&notification).unwrap();
    assert_eq!(value["notificationType"], "VendorTtiMeasNotification");
    assert_eq!(value["meas"][0]["dl"]["tbsBits"], 18_336);
    assert_eq!(value["meas"][0]["ul"].get("tbsBits"), None);
    assert_eq!(serde_json::from_value::<Notification>(value).unwrap(), notification);
    let least = json!({
        "subscriptionType": "VendorTtiMeasSubscription", "callbackReference": "http://a/b", "period_us": 8_000,
    });
    let Subscription::VendorTtiMeas(subscription) = serde_json::from_value(least).unwrap() else {
        panic!("another subscription");
    };
    assert_eq!(
        (subscription.period_us, subscription.transport, subscription.delta),
        (8_000, vendor::Transport::Callback, false)
    );
}

#[test]
fn times_are_kept_to_the_nanosecond() {
    let time = Time::from_nanos(1_977_836_800_123_456_789);
    assert_eq!(TimeStamp::of(time).time(), time);
    assert_eq!(TimeStamp::of(Time::MAX).seconds, u32::MAX);
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in ".{0,200}") {
        serde_json::from_str::<L2Meas>(&text).ok();
        serde_json::from_str::<Notification>(&text).ok();
        serde_json::from_str::<Subscription>(&text).ok();
    }

    /// A member of any type in the place of another.
    #[test]
    fn any_member_is_read_or_refused(at in 0..40usize, number in any::<f64>(), text in ".{0,10}") {
        let mut value = serde_json::to_value(measures()).unwrap();
        let replacements = [json!(number), json!(text), json!(null), json!([]), json!({})];
        let mut place = at;
        replace(&mut value, &mut place, &replacements[at % replacements.len()]);
        serde_json::from_value::<L2Meas>(value).ok();
    }
}

pub(super) fn replace(value: &mut Value, place: &mut usize, by: &Value) {
    if *place == 0 {
        *value = by.clone();
    }
    *place = place.wrapping_sub(1);
    match value {
        Value::Object(members) => members.values_mut().for_each(|member| replace(member, place, by)),
        Value::Array(members) => members.iter_mut().for_each(|member| replace(member, place, by)),
        _ => {}
    }
}
