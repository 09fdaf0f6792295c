//! Queries, with each of their filters.

use serde_json::{Value, json};

use crate::support::bed::{Bed, ecgi, ids};
use crate::support::eventually;

/// With a second bearer, of guaranteed rates, of the second user.
fn bed_with_gbr() -> Bed {
    let mut bed = Bed::new("");
    bed.say(json!({ "bearer": { "cell": 0, "user": 1, "bearer": 1, "qci": 1, "guaranteed": [1000, 2000], "maximum": [3000, 4000] } }));
    eventually("the bearer is known", || (bed.server().core().state().counts().2 == 3).then_some(()));
    bed
}

/// Numbers of all bearers in an answer to `rab_info`, by user.
fn bearers(answer: &Value) -> Vec<(String, u64)> {
    let cells = answer["cellUserInfo"].as_array().into_iter().flatten();
    let users = cells.flat_map(|cell| cell["ueInfo"].as_array().unwrap());
    let of_user = |user: &Value| {
        let address = user["associateId"][0]["value"].as_str().unwrap().to_owned();
        let bearers = user["erabInfo"].as_array().unwrap().clone();
        bearers.into_iter().map(move |bearer| (address.clone(), bearer["erabId"].as_u64().unwrap()))
    };
    users.flat_map(of_user).collect()
}

#[test]
fn each_filter_of_rab_info_selects_bearers() {
    let bed = bed_with_gbr();
    let all = [("10.77.0.2", 5), ("10.77.0.3", 5), ("10.77.0.3", 6)];
    let second = &all[1..];
    let default = &all[..2];
    let gbr = &all[2..];
    for (query, expected) in [
        ("", &all[..]),
        ("app_ins_id=a", &all),
        ("cell_id=0000001", &all),
        ("cell_id=0000002", &[]),
        ("cell_id=0000002,0000001", &all),
        ("cell_id=0000002&cell_id=0000001", &all),
        ("ue_ipv4_address=10.77.0.3", second),
        ("ue_ipv4_address=10.77.0.9", &[]),
        ("ue_ipv6_address=fd00::3", second),
        ("nated_ip_address=192.0.2.3", second),
        ("gtp_teid=101", second),
        ("gtp_teid=102", &[]),
        ("erab_id=5", default),
        ("erab_id=6", gbr),
        ("qci=9", default),
        ("qci=1", gbr),
        ("erab_gbr_dl=1000", gbr),
        ("erab_gbr_ul=2000", gbr),
        ("erab_mbr_dl=3000", gbr),
        ("erab_mbr_ul=4000", gbr),
        ("erab_mbr_ul=3000", &[]),
        ("qci=1&ue_ipv4_address=10.77.0.2", &[]),
    ] {
        let answer = bed.get(&format!("/queries/rab_info?{query}")).expect(200).json();
        let found = bearers(&answer);
        let found: Vec<(&str, u64)> = found.iter().map(|(user, bearer)| (user.as_str(), *bearer)).collect();
        assert_eq!(found, expected, "{query}");
    }
    let answer = bed.get("/queries/rab_info?app_ins_id=a&erab_id=6").expect(200).json();
    assert_eq!(answer["appInstanceId"], "a");
    let user = &answer["cellUserInfo"][0]["ueInfo"][0];
    assert_eq!((&answer["cellUserInfo"][0]["ecgi"], &user["associateId"]), (&ecgi(0), &ids(1)));
    let qos = json!({ "qci": 1, "qosInformation": { "erabGbrDl": 1000, "erabGbrUl": 2000, "erabMbrDl": 3000, "erabMbrUl": 4000 } });
    assert_eq!(user["erabInfo"][0]["erabQosParameters"], qos);
    // Requests are numbered.
    let next = bed.get("/queries/rab_info").expect(200).json();
    assert_ne!(answer["requestId"], next["requestId"]);
}

#[test]
fn users_leave_with_their_source_and_with_their_cells_slots() {
    let mut bed = Bed::new("[measures]\nsilence = \"300ms\"\n");
    let count = |bed: &Bed| bed.server().core().state().counts();
    // A source that is connected may be silent: it tells of events alone.
    std::thread::sleep(std::time::Duration::from_millis(800));
    assert_eq!(count(&bed), (2, 2, 2));
    // A cell of slots may not.
    let slot = |number: u32| json!({ "slot": { "cell": 0, "slot": number, "users": [[0, 17_921, 9, 2_000_000, 1.9]] } });
    bed.say(slot(1));
    eventually("the users are gone", || (count(&bed) == (2, 0, 0)).then_some(()));
    assert!(bearers(&bed.get("/queries/rab_info?app_ins_id=a").json()).is_empty());
    bed.say(slot(2));
    eventually("the first is back", || (count(&bed).1 == 1).then_some(()));
    // The connection ends.
    bed.say(json!({ "event": { "cell": 1, "user": 1, "kind": "attached" } }));
    eventually("the first is gone, the second there", || {
        let users = bed.get("/vendor/users").json();
        let served: Vec<bool> = users.as_array().unwrap().iter().map(|user| user["cell"].is_u64()).collect();
        (served == [false, true]).then_some(())
    });
    bed.hang_up();
    eventually("the second is gone, too", || (count(&bed).1 == 0).then_some(()));
}

#[test]
fn plmn_info_has_an_entry_for_each_application() {
    let bed = Bed::new("");
    bed.get("/queries/plmn_info").expect(400);
    let answer = bed.get("/queries/plmn_info?app_ins_id=a,b&app_ins_id=c").expect(200).json();
    let applications: Vec<&Value> =
        answer.as_array().unwrap().iter().map(|one| &one["appInstanceId"]).collect();
    assert_eq!(applications, ["a", "b", "c"]);
    assert_eq!(answer[0]["plmn"], json!([{ "mcc": "001", "mnc": "01" }]));
    assert!(answer[0]["timeStamp"]["seconds"].as_u64().unwrap() > 1_600_000_000);
}

#[test]
fn each_filter_of_s1_bearer_info_selects_bearers() {
    let mut bed = Bed::new("");
    bed.get("/queries/s1_bearer_info").expect(404);
    let end = json!({ "ipAddress": "198.51.100.1", "tunnelId": "7" });
    for (user, bearer) in [(0, 5), (1, 5), (1, 6)] {
        bed.say(json!({ "notification": {
            "notificationType": "S1BearerNotification", "s1Event": 1,
            "s1UeInfo": { "associateId": ids(user), "ecgi": [ecgi(0)],
                "s1BearerInfo": [{ "erabId": bearer, "enbInfo": end, "sGwInfo": end }] },
        } }));
    }
    let count = |bed: &Bed, query: &str| {
        let reply = bed.get(&format!("/queries/s1_bearer_info?{query}"));
        if reply.status == 404 {
            return 0;
        }
        let users = reply.expect(200).json()["s1UeInfo"].as_array().unwrap().clone();
        users.iter().map(|user| user["s1BearerInfoDetailed"].as_array().unwrap().len()).sum()
    };
    eventually("three bearers", || (count(&bed, "") == 3).then_some(()));
    for (query, expected) in [
        ("ue_ipv4_address=10.77.0.3", 2),
        ("ue_ipv6_address=fd00::2", 1),
        ("nated_ip_address=192.0.2.2", 1),
        ("gtp_teid=101", 2),
        ("gtp_teid=999", 0),
        ("erab_id=5", 2),
        ("erab_id=6,5", 3),
        ("cell_id=0000001", 3),
        ("cell_id=0000002", 0),
        ("temp_ue_id=7,99", 0),
    ] {
        assert_eq!(count(&bed, query), expected, "{query}");
    }
    // Who leaves has no tunnels any more.
    bed.say(json!({ "event": { "cell": 0, "user": 1, "kind": "detached" } }));
    eventually("one bearer", || (count(&bed, "") == 1).then_some(()));
}

/// Names of measures in an object.
fn measures(object: &Value) -> Vec<&String> {
    object
        .as_object()
        .unwrap()
        .keys()
        .filter(|name| !["ecgi", "associateId"].contains(&name.as_str()))
        .collect()
}

#[test]
fn each_measure_of_layer2_meas_can_be_asked_for_alone() {
    const CELL: [&str; 17] = [
        "dl_gbr_prb_usage_cell",
        "ul_gbr_prb_usage_cell",
        "dl_nongbr_prb_usage_cell",
        "ul_nongbr_prb_usage_cell",
        "dl_total_prb_usage_cell",
        "ul_total_prb_usage_cell",
        "received_dedicated_preambles_cell",
        "received_randomly_selected_preambles_low_range_cell",
        "received_randomly_selected_preambles_high_range_cell",
        "number_of_active_ue_dl_gbr_cell",
        "number_of_active_ue_ul_gbr_cell",
        "number_of_active_ue_dl_nongbr_cell",
        "number_of_active_ue_ul_nongbr_cell",
        "dl_gbr_pdr_cell",
        "ul_gbr_pdr_cell",
        "dl_nongbr_pdr_cell",
        "ul_nongbr_pdr_cell",
    ];
    let mut bed = Bed::new("[measures]\nperiod = \"10ms\"\n");
    let mut slot = 0;
    let answer = eventually("an interval is complete", || {
        slot += 1;
        // 25 of 50 PRBs to the first user, 4392 bits in each slot.
        let grant = json!([20, 25, 4392]);
        bed.say(json!({ "slot": { "cell": 0, "slot": slot, "users": [[0, 17, 9, 0, 1.9, [9000, 0, grant]], [1, 18, 9, 0, 1.9]] } }));
        let answer = bed.get("/queries/layer2_meas").expect(200).json();
        answer["cellInfo"][0]["dl_total_prb_usage_cell"].is_u64().then_some(answer)
    });
    assert_eq!(answer["cellInfo"][0]["ecgi"], ecgi(0));
    assert_eq!(answer["cellInfo"][0]["dl_total_prb_usage_cell"], 50);
    // Each user stands there under each of its identifiers.
    assert_eq!(answer["cellUEInfo"].as_array().unwrap().len(), 8);
    let directions =
        ["dl", "ul"].into_iter().flat_map(|way| ["gbr", "nongbr"].map(|kind| format!("{way}_{kind}")));
    let of_users = directions.flat_map(|kind| {
        ["delay_ue", "pdr_ue", "throughput_ue", "data_volume_ue"].map(|measure| format!("{kind}_{measure}"))
    });
    let all: Vec<String> = of_users.chain(CELL.map(str::to_owned)).collect();
    assert_eq!(all.len(), 33);
    for name in &all {
        let answer = bed.get(&format!("/queries/layer2_meas?{name}=1")).expect(200).json();
        let both = ["cellInfo", "cellUEInfo"];
        for object in both.iter().flat_map(|list| answer[*list].as_array().into_iter().flatten()) {
            assert_eq!(measures(object), [name], "{object}");
        }
    }
    for (query, users, cells) in [
        ("ue_ipv4_address=10.77.0.2", 1, 1),
        ("ue_ipv4_address=10.77.0.2,10.77.0.3", 2, 1),
        ("gtp_teid=100&cell_id=0000001", 1, 1),
        ("cell_id=0000002", 0, 0),
        ("dl_total_prb_usage_cell=true", 0, 1),
        ("dl_nongbr_throughput_ue=true&ue_ipv6_address=fd00::2", 1, 0),
    ] {
        let answer = bed.get(&format!("/queries/layer2_meas?{query}")).expect(200).json();
        let count = |list: &str| answer[list].as_array().map_or(0, Vec::len);
        assert_eq!((count("cellUEInfo"), count("cellInfo")), (users, cells), "{query}");
    }
    bed.get("/queries/layer2_meas?dl_total_prb_usage_cell=some").expect(400);
}

#[test]
fn what_is_wrong_with_a_request_is_said_with_its_status() {
    let bed = Bed::new("");
    for (query, part) in [
        ("rab_info?c_id=1", "c_id"),
        ("rab_info?qci=nine", "a whole number"),
        ("s1_bearer_info?erab_id=x", "a whole number"),
        ("layer2_meas?nothing=1", "nothing"),
        ("plmn_info?app=1", "app_ins_id"),
    ] {
        let detail = bed.get(&format!("/queries/{query}")).expect(400).json()["detail"].to_string();
        assert!(detail.contains(part), "{query}: {detail}");
    }
    bed.get("/queries/nothing").expect(404);
    let allowed = bed.ask("POST", "/queries/rab_info", Some(&json!({}))).expect(405);
    assert!(allowed.header("allow").unwrap().contains("GET"), "{allowed:?}");
    let long = "1".repeat(9_000);
    bed.get(&format!("/queries/rab_info?cell_id={long}")).expect(414);
    let ask = |header: (&str, &str)| bed.connect().ask("GET", "/rni/v2/queries/rab_info", &[header], None);
    ask(("Accept", "text/xml")).expect(406);
    ask(("Version", "3.1.1")).expect(406);
    for version in ["2.1.1", "2.2.1"] {
        assert_eq!(ask(("Version", version)).expect(200).header("version"), Some(version));
    }
    assert_eq!(bed.get("/queries/rab_info").header("version"), Some("2.2.1"), "the configured one");
}
