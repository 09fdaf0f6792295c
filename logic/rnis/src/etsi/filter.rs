//! Which occurrences a subscription selects: its filter criteria (V2.1.1, 6.3). A criterion that is missing or an empty list selects
//! everything, except `hoStatus`, whose default is 3 (completed).

use super::measured::{NRcgi, ServCellMeasInfo};
use super::{AssociateId, Ecgi, HoStatus, Notification, Subscription};

/// An occurrence: its notification, with all identifiers of the user, and what filters need beside it.
#[derive(Clone, Debug, PartialEq)]
pub struct Occurrence {
    /// The notification.
    pub notification: Notification,
    /// Class of the bearer, for bearers that were released: their notification lacks it.
    pub qci: Option<u8>,
}

impl Occurrence {
    /// One whose notification says everything.
    pub const fn of(notification: Notification) -> Self {
        Self { notification, qci: None }
    }
}

/// Whether one of the user's identifiers is listed; an empty list has all.
fn of_user(listed: &[AssociateId], user: &[AssociateId]) -> bool {
    listed.is_empty() || listed.iter().any(|id| user.contains(id))
}

/// Whether one of the cells is listed; an empty list has all.
fn in_cell<'a>(listed: &[Ecgi], mut cells: impl Iterator<Item = &'a Ecgi>) -> bool {
    listed.is_empty() || cells.any(|cell| listed.contains(cell))
}

fn one_of<T: PartialEq>(listed: &[T], one: &T) -> bool {
    listed.is_empty() || listed.contains(one)
}

impl Subscription {
    /// Whether the filter selects an occurrence. Subscriptions of the extension select none: their records are not occurrences.
    pub fn selects(&self, occurrence: &Occurrence) -> bool {
        use core::iter::once;
        match (self, &occurrence.notification) {
            (
                Self::CellChange { filter_criteria_assoc_ho: filter, .. },
                Notification::CellChange { associate_id, ho_status, src_ecgi, trg_ecgi, .. },
            ) => {
                let stages: &[HoStatus] =
                    if filter.ho_status.is_empty() { &[HoStatus::Completed] } else { &filter.ho_status };
                of_user(&filter.associate_id, associate_id)
                    && in_cell(&filter.ecgi, once(src_ecgi).chain(trg_ecgi))
                    && stages.contains(ho_status)
            }
            (
                Self::RabEst { filter_criteria_qci: filter, .. },
                Notification::RabEst { ecgi, erab_qos_parameters: qos, .. },
            ) => in_cell(&filter.ecgi, once(ecgi)) && qos.as_ref().is_none_or(|qos| qos.qci == filter.qci),
            (
                Self::RabMod { filter_criteria_qci: filter, .. },
                Notification::RabMod { ecgi, erab_id, erab_qos_parameters: qos, .. },
            ) => {
                in_cell(&filter.ecgi, once(ecgi))
                    && *erab_id == filter.erab_id
                    && qos.as_ref().is_none_or(|qos| qos.qci == filter.qci)
            }
            (
                Self::RabRel { filter_criteria_qci: filter, .. },
                Notification::RabRel { ecgi, erab_release_info, .. },
            ) => {
                in_cell(&filter.ecgi, once(ecgi))
                    && erab_release_info.erab_id == filter.erab_id
                    && occurrence.qci.is_none_or(|qci| qci == filter.qci)
            }
            (Self::MeasRepUe { filter_criteria_assoc_tri: filter, .. }, Notification::MeasRepUe(report)) => {
                of_user(&filter.associate_id, &report.associate_id)
                    && in_cell(&filter.ecgi, once(&report.ecgi))
                    && one_of(&filter.trigger, &report.trigger)
            }
            (Self::NrMeasRepUe { filter_criteria_nr_mrs: filter, .. }, Notification::NrMeasRepUe(report)) => {
                let is_in = |serving: &ServCellMeasInfo| {
                    serving.nrcgi.as_ref().is_some_and(|cell: &NRcgi| filter.nrcgi.contains(cell))
                };
                of_user(&filter.associate_id, &report.associate_id)
                    && (filter.nrcgi.is_empty() || report.serv_cell_meas_info.iter().any(is_in))
                    && one_of(&filter.trigger_nr, &report.trigger_nr)
            }
            (Self::MeasTa { filter_criteria_assoc: filter, .. }, Notification::MeasTa(measured)) => {
                of_user(&filter.associate_id, &measured.associate_id)
                    && in_cell(&filter.ecgi, once(&measured.ecgi))
            }
            (Self::CaReconf { filter_criteria_assoc: filter, .. }, Notification::CaReconf(change)) => {
                of_user(&filter.associate_id, &change.associate_id)
                    && in_cell(&filter.ecgi, once(&change.ecgi))
            }
            (
                Self::S1Bearer { event_type, criteria, .. },
                Notification::S1Bearer { s1_event, s1_ue_info, .. },
            ) => {
                let has_bearer = criteria.erab_id.is_empty()
                    || s1_ue_info
                        .s1_bearer_info
                        .iter()
                        .any(|bearer| bearer.erab_id.is_some_and(|id| criteria.erab_id.contains(&id)));
                event_type.contains(s1_event)
                    && of_user(&criteria.associate_id, &s1_ue_info.associate_id)
                    && in_cell(&criteria.ecgi, s1_ue_info.ecgi.iter())
                    && has_bearer
            }
            _ => false,
        }
    }

    /// Why the description of the interface forbids this subscription although its members have the right types: a list that needs an
    /// entry has none.
    pub fn lacks(&self) -> Option<&'static str> {
        match self {
            Self::S1Bearer { event_type, .. } if event_type.is_empty() => {
                Some("eventType: expected at least one event, found none")
            }
            _ => None,
        }
    }

    /// Adds the defaults that an answer has to include (V2.1.1, 6.3.2: `hoStatus`).
    pub fn complete(&mut self) {
        if let Self::CellChange { filter_criteria_assoc_ho: filter, .. } = self
            && filter.ho_status.is_empty()
        {
            filter.ho_status.push(HoStatus::Completed);
        }
    }
}

impl Notification {
    /// The identifiers of its user; `None` for notifications that are not about one user.
    pub fn user(&self) -> Option<&[AssociateId]> {
        match self {
            Self::CellChange { associate_id, .. }
            | Self::RabEst { associate_id, .. }
            | Self::RabMod { associate_id, .. }
            | Self::RabRel { associate_id, .. } => Some(associate_id),
            Self::MeasRepUe(report) => Some(&report.associate_id),
            Self::NrMeasRepUe(report) => Some(&report.associate_id),
            Self::MeasTa(measured) => Some(&measured.associate_id),
            Self::CaReconf(change) => Some(&change.associate_id),
            Self::S1Bearer { s1_ue_info, .. } => Some(&s1_ue_info.associate_id),
            Self::Expiry(_) | Self::Test(_) | Self::VendorTtiMeas { .. } => None,
        }
    }

    /// A copy about the same user under other identifiers: those that its reader may see. Temporary identifiers are removed.
    #[must_use]
    pub fn under(&self, ids: Vec<AssociateId>) -> Self {
        let mut copy = self.clone();
        match &mut copy {
            Self::CellChange { associate_id, temp_ue_id, .. }
            | Self::RabEst { associate_id, temp_ue_id, .. } => {
                *associate_id = ids;
                *temp_ue_id = None;
            }
            Self::RabMod { associate_id, .. } | Self::RabRel { associate_id, .. } => *associate_id = ids,
            Self::MeasRepUe(report) => report.associate_id = ids,
            Self::NrMeasRepUe(report) => report.associate_id = ids,
            Self::MeasTa(measured) => measured.associate_id = ids,
            Self::CaReconf(change) => change.associate_id = ids,
            Self::S1Bearer { s1_ue_info, .. } => {
                s1_ue_info.associate_id = ids;
                s1_ue_info.temp_ue_id = None;
            }
            Self::Expiry(_) | Self::Test(_) | Self::VendorTtiMeas { .. } => {}
        }
        copy
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn subscription(kind: &str, member: &str, filter: Value) -> Subscription {
        let mut object = json!({ "subscriptionType": kind, "callbackReference": "http://a" });
        if kind == "S1BearerSubscription" {
            object["eventType"] = json!([1, 3]);
        }
        object[member] = filter;
        serde_json::from_value(object).unwrap()
    }

    fn occurrence(kind: &str, members: Value) -> Occurrence {
        let mut object = members;
        object["notificationType"] = json!(kind);
        Occurrence::of(serde_json::from_value(object).unwrap())
    }

    fn cell(id: &str) -> Value {
        json!({ "cellId": id, "plmn": { "mcc": "001", "mnc": "01" } })
    }

    fn phone(last: u8) -> Value {
        json!([{ "type": 1, "value": format!("10.0.0.{last}") }])
    }

    /// Each type: filters that select the occurrence, and filters that miss it by one criterion.
    #[test]
    fn each_criterion_of_each_type_is_evaluated() {
        let nrcgi = |id: &str| json!({ "nrcellId": id, "plmn": { "mcc": "001", "mnc": "01" } });
        let qos = json!({ "qci": 7 });
        let cases = [
            (
                "CellChange",
                "filterCriteriaAssocHo",
                occurrence(
                    "CellChangeNotification",
                    json!({ "associateId": phone(1), "hoStatus": 3, "srcEcgi": cell("A"), "trgEcgi": [cell("B")] }),
                ),
                vec![
                    json!({}),
                    json!({ "associateId": phone(1) }),
                    json!({ "ecgi": [cell("A")] }),
                    json!({ "ecgi": [cell("B")] }),
                    json!({ "hoStatus": [2, 3] }),
                ],
                vec![
                    json!({ "associateId": phone(2) }),
                    json!({ "ecgi": [cell("C")] }),
                    json!({ "hoStatus": [2] }),
                ],
            ),
            (
                "RabEst",
                "filterCriteriaQci",
                occurrence(
                    "RabEstNotification",
                    json!({ "ecgi": cell("A"), "erabId": 5, "erabQosParameters": qos }),
                ),
                vec![json!({ "qci": 7 }), json!({ "qci": 7, "ecgi": [cell("A"), cell("B")] })],
                vec![json!({ "qci": 9 }), json!({ "qci": 7, "ecgi": [cell("B")] })],
            ),
            (
                "RabMod",
                "filterCriteriaQci",
                occurrence(
                    "RabModNotification",
                    json!({ "ecgi": cell("A"), "erabId": 5, "erabQosParameters": qos }),
                ),
                vec![json!({ "qci": 7, "erabId": 5 })],
                vec![
                    json!({ "qci": 7, "erabId": 6 }),
                    json!({ "qci": 8, "erabId": 5 }),
                    json!({ "qci": 7, "erabId": 5, "ecgi": [cell("B")] }),
                ],
            ),
            (
                "RabRel",
                "filterCriteriaQci",
                Occurrence {
                    qci: Some(7),
                    ..occurrence(
                        "RabRelNotification",
                        json!({ "ecgi": cell("A"), "erabReleaseInfo": { "erabId": 5 } }),
                    )
                },
                vec![json!({ "qci": 7, "erabId": 5 })],
                vec![json!({ "qci": 7, "erabId": 6 }), json!({ "qci": 8, "erabId": 5 })],
            ),
            (
                "MeasRepUe",
                "filterCriteriaAssocTri",
                occurrence(
                    "MeasRepUeNotification",
                    json!({ "associateId": phone(1), "ecgi": cell("A"), "rsrp": 1, "rsrq": 2, "trigger": 12 }),
                ),
                vec![json!({}), json!({ "trigger": [11, 12] }), json!({ "ecgi": [cell("A")] })],
                vec![
                    json!({ "trigger": [1] }),
                    json!({ "ecgi": [cell("B")] }),
                    json!({ "associateId": phone(2) }),
                ],
            ),
            (
                "NrMeasRepUe",
                "filterCriteriaNrMrs",
                occurrence(
                    "NrMeasRepUeNotification",
                    json!({ "associateId": phone(1), "triggerNr": 1, "servCellMeasInfo": [{ "nrcgi": nrcgi("A") }] }),
                ),
                vec![json!({}), json!({ "nrcgi": [nrcgi("A")], "triggerNr": [1] })],
                vec![
                    json!({ "nrcgi": [nrcgi("B")] }),
                    json!({ "triggerNr": [2] }),
                    json!({ "associateId": phone(2) }),
                ],
            ),
            (
                "MeasTa",
                "filterCriteriaAssoc",
                occurrence(
                    "MeasTaNotification",
                    json!({ "associateId": phone(1), "ecgi": cell("A"), "timingAdvance": 4 }),
                ),
                vec![json!({}), json!({ "associateId": phone(1), "ecgi": [cell("A")] })],
                vec![json!({ "associateId": phone(2) }), json!({ "ecgi": [cell("B")] })],
            ),
            (
                "CaReconf",
                "filterCriteriaAssoc",
                occurrence("CaReconfNotification", json!({ "associateId": phone(1), "ecgi": cell("A") })),
                vec![json!({})],
                vec![json!({ "associateId": phone(2) }), json!({ "ecgi": [cell("B")] })],
            ),
            (
                "S1Bearer",
                "S1BearerSubscriptionCriteria",
                occurrence(
                    "S1BearerNotification",
                    json!({ "s1Event": 1, "s1UeInfo": { "associateId": phone(1), "ecgi": [cell("A")], "s1BearerInfo": [{ "erabId": 5 }] } }),
                ),
                vec![json!({}), json!({ "erabId": [5], "ecgi": [cell("A")], "associateId": phone(1) })],
                vec![
                    json!({ "erabId": [6] }),
                    json!({ "ecgi": [cell("B")] }),
                    json!({ "associateId": phone(2) }),
                ],
            ),
        ];
        for (kind, member, happened, selects, misses) in &cases {
            let name = format!("{kind}Subscription");
            for filter in selects {
                assert!(
                    subscription(&name, member, filter.clone()).selects(happened),
                    "{kind} selects with {filter}"
                );
            }
            for filter in misses {
                assert!(
                    !subscription(&name, member, filter.clone()).selects(happened),
                    "{kind} misses with {filter}"
                );
            }
            // No type selects the occurrences of another.
            for (other, _, happened, ..) in cases.iter().filter(|(other, ..)| other != kind) {
                assert!(
                    !subscription(&name, member, selects[0].clone()).selects(happened),
                    "{kind} and {other}"
                );
            }
        }
        let s1 = |event: u8| {
            let mut event_of = occurrence(
                "S1BearerNotification",
                json!({ "s1Event": event, "s1UeInfo": { "ecgi": [cell("A")], "s1BearerInfo": [] } }),
            );
            event_of.qci = None;
            subscription("S1BearerSubscription", "S1BearerSubscriptionCriteria", json!({})).selects(&event_of)
        };
        assert_eq!([1, 2, 3].map(s1), [true, false, true], "only the events of eventType");
    }

    #[test]
    fn a_reader_sees_the_user_only_under_the_given_identifiers() {
        let happened = occurrence(
            "CellChangeNotification",
            json!({ "associateId": [{ "type": 1, "value": "10.0.0.1" }, { "type": 4, "value": "77" }], "hoStatus": 3,
                "srcEcgi": cell("A"), "trgEcgi": [cell("B")], "tempUeId": { "mmec": "1", "mtmsi": "2" } }),
        );
        let tunnel = vec![AssociateId { id_type: super::super::IdType::GtpTeid, value: "77".to_owned() }];
        let seen = happened.notification.under(tunnel.clone());
        assert_eq!(seen.user(), Some(&tunnel[..]));
        let text = serde_json::to_string(&seen).unwrap();
        assert!(!text.contains("10.0.0.1") && !text.contains("mtmsi"), "{text}");
    }

    #[test]
    fn defaults_are_added_and_empty_lists_found() {
        let mut change = subscription("CellChangeSubscription", "filterCriteriaAssocHo", json!({}));
        change.complete();
        let value = serde_json::to_value(&change).unwrap();
        assert_eq!(value["filterCriteriaAssocHo"]["hoStatus"], json!([3]));
        let mut s1 = json!({ "subscriptionType": "S1BearerSubscription", "callbackReference": "http://a",
            "eventType": [], "S1BearerSubscriptionCriteria": {} });
        let found: Subscription = serde_json::from_value(s1.clone()).unwrap();
        assert!(found.lacks().is_some());
        s1["eventType"] = json!([1]);
        assert!(serde_json::from_value::<Subscription>(s1).unwrap().lacks().is_none());
    }

    #[test]
    fn both_spellings_of_carrier_changes_are_read() {
        for name in ["CaReconfSubscription", "CaReConfSubscription"] {
            let found = subscription(name, "filterCriteriaAssoc", json!({}));
            assert!(matches!(found, Subscription::CaReconf { .. }), "{name}");
        }
        for name in ["CaReconfNotification", "CaReConfNotification"] {
            let found = occurrence(name, json!({ "ecgi": cell("A") }));
            assert!(matches!(found.notification, Notification::CaReconf(_)), "{name}");
        }
    }
}
